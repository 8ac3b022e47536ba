"""The scoreboard in Python, with ibmmq or pymqi: ``python scores.py QMGR subscribe | publish TEAM SCORE | read``."""

import sys

try:
    import ibmmq as mq
except ImportError:
    import pymqi as mq

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM_QUEUE = "SYSTEM.BROKER.DEFAULT.STREAM"


def put_command(qmgr, queue, psc, data=b""):
    rfh2 = mq.RFH2(NameValueCCSID=1208, CodedCharSetId=1208, Format=mq.CMQC.MQFMT_STRING)
    rfh2.add_folder(psc.encode())
    md = mq.MD(Format=mq.CMQC.MQFMT_RF_HEADER_2, ReplyToQ=b"SCORES")
    md.MsgType = mq.CMQC.MQMT_REQUEST if queue == CONTROL_QUEUE else mq.CMQC.MQMT_DATAGRAM
    opened = mq.Queue(qmgr, queue, mq.CMQC.MQOO_OUTPUT)
    opened.put_rfh2(data, md, mq.PMO(), [rfh2])
    opened.close()


def read_all(qmgr):
    opened = mq.Queue(qmgr, "SCORES", mq.CMQC.MQOO_INPUT_SHARED)
    while True:
        md, headers = mq.MD(), []
        try:
            data = opened.get_rfh2(None, md, mq.GMO(), headers)
        except mq.MQMIError as error:
            if error.reason == mq.CMQC.MQRC_NO_MSG_AVAILABLE:
                return
            raise
        if md.MsgType == mq.CMQC.MQMT_REPLY:
            print("answered:", headers[0]["pscr"].decode())
        else:
            print("score:", data.decode())


def main(name, verb, *words):
    qmgr = mq.connect(name)
    if verb == "subscribe":
        psc = "<psc><Command>RegSub</Command><Topic>Sport/Soccer/#</Topic><QName>SCORES</QName></psc>"
        put_command(qmgr, CONTROL_QUEUE, psc)
    elif verb == "publish":
        team, score = words
        psc = f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>Sport/Soccer/{team}</Topic></psc>"
        put_command(qmgr, STREAM_QUEUE, psc, score.encode())
    elif verb == "read":
        read_all(qmgr)
    qmgr.disconnect()


if __name__ == "__main__":
    main(*sys.argv[1:])
