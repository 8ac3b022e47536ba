"""The public boards for IBM MQ: each series that a panel asks for is served here, or it is said why not."""

from __future__ import annotations

import pytest

from commands.monitoring.catalogue import BY_NAME

# Of cmd/mq_prometheus of ibm-messaging/mq-metric-samples: what the panels of each board ask for.
BOARDS = {
    "Queue_Manager_Status": """ibmmq_cluster_suspend ibmmq_nha_backlog_average_bytes
        ibmmq_nha_synchronous_log_sent_bytes
        ibmmq_qmgr_active_listeners ibmmq_qmgr_channel_initiator_status ibmmq_qmgr_command_server_status
        ibmmq_qmgr_connection_count ibmmq_qmgr_exporter_publications ibmmq_qmgr_interval_destructive_get_total_count
        ibmmq_qmgr_interval_mqput_mqput1_total_count ibmmq_qmgr_max_active_channels ibmmq_qmgr_max_channels
        ibmmq_qmgr_mq_fdc_file_count ibmmq_qmgr_status ibmmq_qmgr_uptime""",
    "Queue_Status": """ibmmq_queue_attribute_max_depth ibmmq_queue_depth ibmmq_queue_input_handles
        ibmmq_queue_oldest_message_age ibmmq_queue_output_handles ibmmq_queue_qfile_current_size
        ibmmq_queue_qfile_max_size ibmmq_queue_qtime_long ibmmq_queue_qtime_short ibmmq_queue_time_since_get
        ibmmq_queue_time_since_put ibmmq_queue_uncommitted_messages""",
    "Topic_Status": """ibmmq_qmgr_topic_mqput_mqput1_interval_total ibmmq_subscription_messsages_received
        ibmmq_subscription_time_since_message_published ibmmq_topic_messages_published ibmmq_topic_messages_received
        ibmmq_topic_publisher_count ibmmq_topic_subscriber_count ibmmq_topic_time_since_msg_published
        ibmmq_topic_time_since_msg_received""",
    "Channel_Status": """ibmmq_channel_attribute_max_inst ibmmq_channel_attribute_max_instc ibmmq_channel_batches
        ibmmq_channel_batchsz_long ibmmq_channel_batchsz_short ibmmq_channel_buffers_rcvd ibmmq_channel_buffers_sent
        ibmmq_channel_bytes_rcvd ibmmq_channel_bytes_sent ibmmq_channel_cur_inst ibmmq_channel_messages
        ibmmq_channel_nettime_long ibmmq_channel_nettime_short ibmmq_channel_status ibmmq_channel_status_squash
        ibmmq_channel_time_since_msg ibmmq_channel_xmitq_time_long ibmmq_channel_xmitq_time_short""",
    "MQ_Prometheus_Overview": """ibmmq_channel_messages ibmmq_channel_status ibmmq_channel_status_squash
        ibmmq_qmgr_create_non_durable_subscription ibmmq_qmgr_interval_destructive_get_total_count
        ibmmq_qmgr_interval_mqput_mqput1_total_count ibmmq_qmgr_log_file_system_in_use_bytes
        ibmmq_qmgr_log_write_latency_seconds ibmmq_qmgr_mq_errors_file_system_free_space_percentage
        ibmmq_qmgr_non_durable_subscriber_high_water_mark ibmmq_qmgr_non_durable_subscriber_low_water_mark
        ibmmq_qmgr_non_persistent_message_browse_count ibmmq_qmgr_persistent_message_browse_count
        ibmmq_qmgr_published_to_subscribers_message_count ibmmq_qmgr_put_non_persistent_messages_bytes
        ibmmq_qmgr_put_persistent_messages_bytes ibmmq_qmgr_queue_manager_file_system_in_use_bytes
        ibmmq_qmgr_system_cpu_time_percentage ibmmq_qmgr_user_cpu_time_percentage ibmmq_queue_depth
        ibmmq_queue_mqget_count ibmmq_queue_mqput_mqput1_count ibmmq_queue_oldest_message_age""",
}
INTERVAL = "a count of the last interval, of the statistics that a queue manager publishes; there is a counter instead"
MACHINE = "the machine's or its file systems': the exporter of the node has it"
NO_SUCH = "there is no such thing here"
# Why there is no series, by the beginning of the name.
WITHOUT = {
    "ibmmq_nha_": NO_SUCH,
    "ibmmq_cluster_suspend": "DISPLAY CLUSQMGR shows it",
    "ibmmq_qmgr_exporter_publications": NO_SUCH,
    "ibmmq_qmgr_max_": NO_SUCH,
    "ibmmq_qmgr_mq_": MACHINE,
    "ibmmq_qmgr_interval_": INTERVAL,
    "ibmmq_qmgr_topic_mqput_mqput1_interval_total": INTERVAL,
    "ibmmq_qmgr_create_": INTERVAL,
    "ibmmq_qmgr_non_durable_subscriber_": INTERVAL,
    "ibmmq_qmgr_non_persistent_message_browse_count": INTERVAL,
    "ibmmq_qmgr_persistent_message_browse_count": INTERVAL,
    "ibmmq_qmgr_published_": INTERVAL,
    "ibmmq_qmgr_put_": INTERVAL,
    "ibmmq_queue_mqget_count": INTERVAL,
    "ibmmq_queue_mqput_mqput1_count": INTERVAL,
    "ibmmq_qmgr_log_": MACHINE,
    "ibmmq_qmgr_queue_manager_file_system_": MACHINE,
    "ibmmq_qmgr_system_cpu_": MACHINE,
    "ibmmq_qmgr_user_cpu_": MACHINE,
    "ibmmq_queue_qfile_": NO_SUCH,
    "ibmmq_queue_qtime_": "not measured for each message (QTIME is blank)",
    "ibmmq_queue_uncommitted_messages": "it would take a look at every unit of work at each scrape (UNCOM shows it)",
    "ibmmq_channel_batch": NO_SUCH,
    "ibmmq_channel_buffers_": "not counted (blank in DISPLAY CHSTATUS)",
    "ibmmq_channel_nettime_": "of channels between queue managers",
    "ibmmq_channel_time_since_msg": "each program has a time of its own (DISPLAY CHSTATUS)",
    "ibmmq_channel_xmitq_": "of channels between queue managers",
}
SERIES = sorted({name for names in BOARDS.values() for name in names.split()})


@pytest.mark.parametrize("name", SERIES)
def test_a_series_of_the_boards_is_served_or_it_is_said_why_not(name: str) -> None:
    reasons = [why for beginning, why in WITHOUT.items() if name.startswith(beginning)]
    assert (name in BY_NAME) is not bool(reasons), name


def test_each_reason_is_about_a_panel_that_there_is() -> None:
    assert [each for each in WITHOUT if not any(name.startswith(each) for name in SERIES)] == []
    assert [name for name in BY_NAME if name.startswith("ibmmq_") and name not in SERIES] == []
