/* As much of the interface as docs/tutorials/programs/scores.c uses: names, numbers and layouts, 64-bit Linux. */
#ifndef CMQC_H
#define CMQC_H
#include <stdint.h>

typedef int32_t MQLONG, MQHCONN, MQHOBJ;
typedef char MQCHAR4[4], MQCHAR8[8], MQCHAR12[12], MQCHAR28[28], MQCHAR32[32], MQCHAR48[48];
typedef unsigned char MQBYTE24[24], MQBYTE32[32];

#define MQCC_OK 0
#define MQCC_FAILED 2
#define MQRC_NO_MSG_AVAILABLE 2033
#define MQMT_REQUEST 1
#define MQMT_REPLY 2
#define MQMT_DATAGRAM 8
#define MQCO_NONE 0
#define MQOO_INPUT_SHARED 2
#define MQCCSI_INHERIT (-2)
#define MQENC_NATIVE 546
#define MQFMT_NONE "        "
#define MQFMT_STRING "MQSTR   "
#define MQFMT_RF_HEADER_2 "MQHRF2  "
#define MQ_FORMAT_LENGTH 8
#define MQ_Q_NAME_LENGTH 48
#define MQRFH_STRUC_LENGTH_FIXED_2 36

typedef struct {
    MQCHAR4 StrucId; MQLONG Version, Report, MsgType, Expiry, Feedback, Encoding, CodedCharSetId; MQCHAR8 Format;
    MQLONG Priority, Persistence; MQBYTE24 MsgId, CorrelId; MQLONG BackoutCount; MQCHAR48 ReplyToQ, ReplyToQMgr;
    MQCHAR12 UserIdentifier; MQBYTE32 AccountingToken; MQCHAR32 ApplIdentityData; MQLONG PutApplType;
    MQCHAR28 PutApplName; MQCHAR8 PutDate, PutTime; MQCHAR4 ApplOriginData;
} MQMD;
#define MQMD_DEFAULT {'M', 'D', ' ', ' '}, 1, 0, 8, -1, 0, MQENC_NATIVE, 0, "        ", -1, 2

typedef struct {
    MQCHAR4 StrucId; MQLONG Version, ObjectType; MQCHAR48 ObjectName, ObjectQMgrName, DynamicQName;
    MQCHAR12 AlternateUserId;
} MQOD;
#define MQOD_DEFAULT {'O', 'D', ' ', ' '}, 1, 1

typedef struct {
    MQCHAR4 StrucId; MQLONG Version, Options, Timeout, Context, KnownDestCount, UnknownDestCount, InvalidDestCount;
    MQCHAR48 ResolvedQName, ResolvedQMgrName;
} MQPMO;
#define MQPMO_DEFAULT {'P', 'M', 'O', ' '}, 1, 0, -1

typedef struct {
    MQCHAR4 StrucId; MQLONG Version, Options, WaitInterval, Signal1, Signal2; MQCHAR48 ResolvedQName;
} MQGMO;
#define MQGMO_DEFAULT {'G', 'M', 'O', ' '}, 1

typedef struct {
    MQCHAR4 StrucId; MQLONG Version, StrucLength, Encoding, CodedCharSetId; MQCHAR8 Format;
    MQLONG Flags, NameValueCCSID;
} MQRFH2;
#define MQRFH2_DEFAULT {'R', 'F', 'H', ' '}, 2, 36, MQENC_NATIVE, MQCCSI_INHERIT, "        ", 0, 1208

void MQCONN(char *, MQHCONN *, MQLONG *, MQLONG *);
void MQDISC(MQHCONN *, MQLONG *, MQLONG *);
void MQOPEN(MQHCONN, MQOD *, MQLONG, MQHOBJ *, MQLONG *, MQLONG *);
void MQCLOSE(MQHCONN, MQHOBJ *, MQLONG, MQLONG *, MQLONG *);
void MQPUT1(MQHCONN, MQOD *, MQMD *, MQPMO *, MQLONG, void *, MQLONG *, MQLONG *);
void MQGET(MQHCONN, MQHOBJ, MQMD *, MQGMO *, MQLONG, void *, MQLONG *, MQLONG *, MQLONG *);
#endif
