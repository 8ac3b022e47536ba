/* A scoreboard as it was written for MA0C, and for WebSphere MQ 6: it registers, publishes, and reads what it is sent.
 *
 *     scores QMGR subscribe            puts RegSub on SYSTEM.BROKER.CONTROL.QUEUE
 *     scores QMGR publish TEAM SCORE   puts Publish on SYSTEM.BROKER.DEFAULT.STREAM
 *     scores QMGR read                 gets what is on queue SCORES
 *
 * cc -o scores scores.c -lmqm_r        (-lmqic_r for a client)
 */
#include <stdio.h>
#include <string.h>
#include <cmqc.h>

#define CONTROL_QUEUE "SYSTEM.BROKER.CONTROL.QUEUE"
#define STREAM_QUEUE "SYSTEM.BROKER.DEFAULT.STREAM"

static int failed(const char *call, MQLONG compcode, MQLONG reason)
{
    if (compcode != MQCC_OK)
        fprintf(stderr, "%s ended with reason code %d\n", call, (int)reason);
    return compcode == MQCC_FAILED;
}

/* One command message: MQRFH2, the psc folder, the data. */
static int put_command(MQHCONN hconn, const char *queue, const char *psc, const char *data)
{
    MQOD od = {MQOD_DEFAULT};
    MQMD md = {MQMD_DEFAULT};
    MQPMO pmo = {MQPMO_DEFAULT};
    MQRFH2 rfh2 = {MQRFH2_DEFAULT};
    MQLONG folder = (MQLONG)(strlen(psc) + 3) / 4 * 4, length = MQRFH_STRUC_LENGTH_FIXED_2 + 4 + folder;
    MQLONG compcode, reason;
    char message[1024];

    if (length + strlen(data) > sizeof message)
        return 1;
    rfh2.StrucLength = length;
    rfh2.CodedCharSetId = MQCCSI_INHERIT;
    memcpy(rfh2.Format, *data ? MQFMT_STRING : MQFMT_NONE, MQ_FORMAT_LENGTH);
    memcpy(message, &rfh2, MQRFH_STRUC_LENGTH_FIXED_2);
    memcpy(message + MQRFH_STRUC_LENGTH_FIXED_2, &folder, 4);
    memset(message + MQRFH_STRUC_LENGTH_FIXED_2 + 4, ' ', (size_t)folder);
    memcpy(message + MQRFH_STRUC_LENGTH_FIXED_2 + 4, psc, strlen(psc));
    memcpy(message + length, data, strlen(data));

    strncpy(od.ObjectName, queue, MQ_Q_NAME_LENGTH);
    memcpy(md.Format, MQFMT_RF_HEADER_2, MQ_FORMAT_LENGTH);
    strncpy(md.ReplyToQ, "SCORES", MQ_Q_NAME_LENGTH);
    md.MsgType = strcmp(queue, CONTROL_QUEUE) ? MQMT_DATAGRAM : MQMT_REQUEST;
    MQPUT1(hconn, &od, &md, &pmo, length + (MQLONG)strlen(data), message, &compcode, &reason);
    return failed("MQPUT1", compcode, reason);
}

static int read_all(MQHCONN hconn)
{
    MQOD od = {MQOD_DEFAULT};
    MQGMO gmo = {MQGMO_DEFAULT};
    MQHOBJ hobj;
    MQLONG compcode, reason, got;
    char message[1024];

    strncpy(od.ObjectName, "SCORES", MQ_Q_NAME_LENGTH);
    MQOPEN(hconn, &od, MQOO_INPUT_SHARED, &hobj, &compcode, &reason);
    if (failed("MQOPEN", compcode, reason))
        return 1;
    for (;;) {
        MQMD md = {MQMD_DEFAULT};
        MQRFH2 *rfh2 = (MQRFH2 *)message;
        MQGET(hconn, hobj, &md, &gmo, sizeof message, message, &got, &compcode, &reason);
        if (reason == MQRC_NO_MSG_AVAILABLE)
            break;
        if (failed("MQGET", compcode, reason))
            return 1;
        if (md.MsgType == MQMT_REPLY)
            printf("answered: %.*s\n", (int)(got - 40), message + 40);
        else
            printf("score: %.*s\n", (int)(got - rfh2->StrucLength), message + rfh2->StrucLength);
    }
    MQCLOSE(hconn, &hobj, MQCO_NONE, &compcode, &reason);
    return failed("MQCLOSE", compcode, reason);
}

int main(int argc, char **argv)
{
    MQCHAR48 qmgr = "";
    MQHCONN hconn;
    MQLONG compcode, reason;
    char psc[512];
    int code = 2;

    if (argc < 3)
        return code;
    strncpy(qmgr, argv[1], sizeof qmgr);
    MQCONN(qmgr, &hconn, &compcode, &reason);
    if (failed("MQCONN", compcode, reason))
        return 1;
    if (!strcmp(argv[2], "subscribe")) {
        code = put_command(hconn, CONTROL_QUEUE,
            "<psc><Command>RegSub</Command><Topic>Sport/Soccer/#</Topic><QName>SCORES</QName></psc>", "");
    } else if (!strcmp(argv[2], "publish") && argc == 5) {
        snprintf(psc, sizeof psc,
            "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>Sport/Soccer/%.300s</Topic></psc>", argv[3]);
        code = put_command(hconn, STREAM_QUEUE, psc, argv[4]);
    } else if (!strcmp(argv[2], "read")) {
        code = read_all(hconn);
    }
    MQDISC(&hconn, &compcode, &reason);
    return code;
}
