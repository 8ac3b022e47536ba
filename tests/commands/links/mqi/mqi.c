/*
 * mqi.c - a stand-in for IBM MQ's client library, libmqm_r.so, for tests.
 *
 * Exports the C entry points that the ibmmq package is linked with, and forwards
 * those that the bridge calls to server.py over a Unix socket (path in
 * $MQI_SOCKET).  No MQ header is needed: structures are handled as raw bytes at
 * their documented offsets (64-bit ABI, MQLONG = int).  README.md has the wire
 * protocol.
 */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int32_t L;

enum { CC_OK = 0, CC_WARNING = 1, CC_FAILED = 2 };
enum {
    RC_ALREADY_CONNECTED = 2002, RC_BUFFER_LENGTH_ERROR = 2005,
    RC_CONNECTION_BROKEN = 2009, RC_HCONN_ERROR = 2018, RC_MD_ERROR = 2026,
    RC_OD_ERROR = 2044, RC_Q_MGR_NAME_ERROR = 2058,
    RC_Q_MGR_NOT_AVAILABLE = 2059, RC_STORAGE_NOT_AVAILABLE = 2071,
    RC_PMO_ERROR = 2173, RC_GMO_ERROR = 2186, RC_FUNCTION_NOT_SUPPORTED = 2298,
    RC_SD_ERROR = 2424
};

/* ------------------------------------------------------------ byte buffer */

typedef struct { unsigned char *p; size_t len, cap; int bad; } Buf;

static void b_raw(Buf *b, const void *src, size_t n)
{
    if (b->len + n > b->cap) {
        size_t cap = (b->len + n) * 2 + 64;
        unsigned char *q = realloc(b->p, cap);
        if (!q) { b->bad = 1; return; }
        b->p = q; b->cap = cap;
    }
    if (n) memcpy(b->p + b->len, src, n);
    b->len += n;
}
static void b_u8(Buf *b, int v) { unsigned char c = (unsigned char)v; b_raw(b, &c, 1); }
static void b_i32(Buf *b, L v) { b_raw(b, &v, 4); }
static void b_blob(Buf *b, const void *src, size_t n) { b_i32(b, (L)n); b_raw(b, src, n); }
/* fixed-length MQCHARn field: ends at a null or at the field end; blanks trimmed */
static void b_name(Buf *b, const char *f, size_t width)
{
    size_t n = 0;
    while (n < width && f[n]) n++;
    while (n && f[n - 1] == ' ') n--;
    b_blob(b, f, n);
}
static void b_free(Buf *b) { free(b->p); memset(b, 0, sizeof *b); }

typedef struct { const unsigned char *p; size_t len, at; int bad; } Rd;

static L r_i32(Rd *r)
{
    L v = 0;
    if (r->at + 4 > r->len) { r->bad = 1; return 0; }
    memcpy(&v, r->p + r->at, 4);
    r->at += 4;
    return v;
}
static const unsigned char *r_blob(Rd *r, size_t *n)
{
    L k = r_i32(r);
    const unsigned char *q = r->p + r->at;
    if (r->bad || k < 0 || r->at + (size_t)k > r->len) { r->bad = 1; *n = 0; return r->p; }
    r->at += (size_t)k;
    *n = (size_t)k;
    return q;
}
/* copy a name out, blank padded to the width of the field */
static void r_name(Rd *r, char *dst, size_t width)
{
    size_t n;
    const unsigned char *q = r_blob(r, &n);
    if (!dst) return;
    if (n > width) n = width;
    memset(dst, ' ', width);
    memcpy(dst, q, n);
}

/* ------------------------------------------------------------- transport */

/* One Conn a connection handle: a process may have several, each used by one thread at a time. */
enum { MAX_CONNS = 64 };
typedef struct { int fd; char qmgr[49]; pthread_mutex_t lock; } Conn;
static Conn g_conns[MAX_CONNS];
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

static Conn *conn_of(L hconn)
{
    if (hconn < 1 || hconn > MAX_CONNS || g_conns[hconn - 1].fd <= 0) return NULL;
    return &g_conns[hconn - 1];
}

static int io_all(int fd, void *p, size_t n, int writing)
{
    char *c = p;
    while (n) {
        ssize_t k = writing ? write(fd, c, n) : read(fd, c, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        c += k; n -= (size_t)k;
    }
    return 0;
}

/* send one request, read one answer; the answer replaces the buffer */
static int rpc(Conn *c, Buf *b)
{
    uint32_t n = (uint32_t)b->len;
    int fd = c->fd;
    if (b->bad || fd <= 0) return -1;
    if (io_all(fd, &n, 4, 1) || io_all(fd, b->p, b->len, 1)) return -1;
    if (io_all(fd, &n, 4, 0)) return -1;
    b->len = 0;
    if (n > b->cap) {
        unsigned char *q = realloc(b->p, n);
        if (!q) return -1;
        b->p = q; b->cap = n;
    }
    if (io_all(fd, b->p, n, 0)) return -1;
    b->len = n;
    return 0;
}

static void fail(L *cc, L *rc, L reason) { *cc = CC_FAILED; *rc = reason; }

static Conn *connected(L hconn, L *cc, L *rc)
{
    Conn *c = conn_of(hconn);
    if (!c) fail(cc, rc, RC_HCONN_ERROR);
    return c;
}

/* run the request and pick up CompCode/Reason; 0 when an answer came */
static int call(Conn *c, Buf *b, Rd *r, L *cc, L *rc)
{
    int bad;
    pthread_mutex_lock(&c->lock);
    bad = rpc(c, b);
    pthread_mutex_unlock(&c->lock);
    if (bad) { fail(cc, rc, RC_CONNECTION_BROKEN); return -1; }
    memset(r, 0, sizeof *r);
    r->p = b->p; r->len = b->len;
    *cc = r_i32(r);
    *rc = r_i32(r);
    if (r->bad) { fail(cc, rc, RC_CONNECTION_BROKEN); return -1; }
    return 0;
}

/* ---------------------------------------------------------- MQI: connect */

/* user, password: what an MQCSP gives, or NULL */
static void connect_to(char *qmgr, const char *user, size_t userlen, const char *pw, size_t pwlen,
                       const char *name, L *hconn, L *cc, L *rc)
{
    const char *path = getenv("MQI_SOCKET");
    struct passwd *entry = getpwuid(getuid());
    struct sockaddr_un sa;
    char app[1024];
    ssize_t k;
    int fd, i;
    Conn *c = NULL;
    Buf b = {0};
    Rd r;

    *hconn = -1;
    memset(&sa, 0, sizeof sa);
    sa.sun_family = AF_UNIX;
    if (!path || strlen(path) >= sizeof sa.sun_path) { fail(cc, rc, RC_Q_MGR_NOT_AVAILABLE); return; }
    strcpy(sa.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa)) {
        if (fd >= 0) close(fd);
        fail(cc, rc, RC_Q_MGR_NOT_AVAILABLE);
        return;
    }
    pthread_mutex_lock(&g_lock);
    for (i = 0; i < MAX_CONNS && g_conns[i].fd > 0; i++) ;
    if (i < MAX_CONNS) {
        c = &g_conns[i];
        c->fd = fd;
        pthread_mutex_init(&c->lock, NULL);
    }
    pthread_mutex_unlock(&g_lock);
    if (!c) { close(fd); fail(cc, rc, RC_STORAGE_NOT_AVAILABLE); return; }
    if (!user) { user = entry ? entry->pw_name : "unknown"; userlen = strlen(user); }
    k = readlink("/proc/self/exe", app, sizeof app - 1);
    app[k < 0 ? 0 : k] = 0;
    if (name && name[0] && name[0] != ' ') {
        memcpy(app, name, 28);
        app[28] = 0;
        app[strcspn(app, " ")] = 0;
    }
    b_u8(&b, 'C');
    b_name(&b, qmgr, 48);
    b_blob(&b, user, userlen);
    b_blob(&b, app, strlen(app));
    b_i32(&b, (L)getpid());
    b_blob(&b, pw ? pw : "", pw ? pwlen : 0);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        r_name(&r, c->qmgr, 48);
        *hconn = i + 1;
    } else {
        close(fd);
        c->fd = 0;
    }
    b_free(&b);
}

void MQCONN(char *qmgr, L *hconn, L *cc, L *rc) { connect_to(qmgr, NULL, 0, NULL, 0, NULL, hconn, cc, rc); }

/* MQCNO and MQCSP offsets */
enum { CNO_VER = 4, CNO_CSP = 192, CNO_APPL = 224, CSP_TYPE = 8, CSP_USER = 16, CSP_USERLEN = 28, CSP_PW = 40, CSP_PWLEN = 52 };

void MQCONNX(char *qmgr, void *cnop, L *hconn, L *cc, L *rc)
{
    char *cno = cnop, *csp = NULL, *user = NULL, *pw = NULL;
    L ver = 0, type = 0, userlen = 0, pwlen = 0;
    if (cno) memcpy(&ver, cno + CNO_VER, 4);
    if (ver >= 5) memcpy(&csp, cno + CNO_CSP, sizeof csp);
    if (csp) {
        memcpy(&type, csp + CSP_TYPE, 4);
        if (type == 1) {
            memcpy(&user, csp + CSP_USER, sizeof user);
            memcpy(&userlen, csp + CSP_USERLEN, 4);
            memcpy(&pw, csp + CSP_PW, sizeof pw);
            memcpy(&pwlen, csp + CSP_PWLEN, 4);
        }
    }
    connect_to(qmgr, user, (size_t)userlen, pw, (size_t)pwlen, ver >= 7 ? cno + CNO_APPL : NULL, hconn, cc, rc);
}

void MQDISC(L *hconn, L *cc, L *rc)
{
    Buf b = {0};
    Rd r;
    Conn *c = connected(*hconn, cc, rc);
    if (!c) return;
    b_u8(&b, 'D');
    call(c, &b, &r, cc, rc);
    b_free(&b);
    pthread_mutex_lock(&g_lock);
    close(c->fd);
    c->fd = 0;
    pthread_mutex_unlock(&g_lock);
    *hconn = -1;
}

/* -------------------------------------------------------- MQI: open/close */

/* MQOD offsets */
enum { OD_VER = 4, OD_TYPE = 8, OD_NAME = 12, OD_QMGR = 60, OD_DYN = 108,
       OD_RESQ = 248, OD_RESM = 296, OD_STRING = 344 };

/* an MQCHARV: what its pointer or its offset leads to */
static void b_charv(Buf *b, const char *base, size_t at)
{
    const char *p;
    L offset, len;
    memcpy(&p, base + at, sizeof p);
    memcpy(&offset, base + at + 8, 4);
    memcpy(&len, base + at + 16, 4);
    if (!p && offset) p = base + offset;
    if (p && len < 0) len = (L)strlen(p);
    b_blob(b, p ? p : "", p ? (size_t)len : 0);
}

void MQOPEN(L hconn, void *objdesc, L options, L *hobj, L *cc, L *rc)
{
    Conn *c;
    char *od = objdesc, res[48];
    Buf b = {0};
    Rd r;
    L ver, type, h;

    *hobj = -1;
    if (!(c = connected(hconn, cc, rc))) return;
    if (memcmp(od, "OD  ", 4)) { fail(cc, rc, RC_OD_ERROR); return; }
    memcpy(&ver, od + OD_VER, 4);
    memcpy(&type, od + OD_TYPE, 4);
    b_u8(&b, 'O');
    b_i32(&b, type);
    b_name(&b, od + OD_NAME, 48);
    b_name(&b, od + OD_QMGR, 48);
    b_name(&b, od + OD_DYN, 48);
    b_i32(&b, options);
    if (ver >= 4) b_charv(&b, od, OD_STRING); else b_blob(&b, "", 0);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        L created;
        h = r_i32(&r);
        created = r_i32(&r);            /* 1: a dynamic queue was made */
        r_name(&r, res, 48);
        *hobj = h;
        if (created) memcpy(od + OD_NAME, res, 48);
        if (ver >= 3) {
            memcpy(od + OD_RESQ, res, 48);
            memcpy(od + OD_RESM, c->qmgr, 48);
        }
    }
    b_free(&b);
}

void MQCLOSE(L hconn, L *hobj, L options, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    Rd r;
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, 'X');
    b_i32(&b, *hobj);
    b_i32(&b, options);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) *hobj = -1;
    b_free(&b);
}

/* ----------------------------------------------------------- MQI: put/get */

static size_t md_size(const char *md)
{
    L v;
    if (memcmp(md, "MD  ", 4)) return 0;
    memcpy(&v, md + 4, 4);
    return v == 1 ? 324 : v == 2 ? 364 : 0;
}

static void md_back(Rd *r, char *md, size_t mdlen)
{
    size_t n;
    const unsigned char *q = r_blob(r, &n);
    if (n == mdlen) memcpy(md, q, n);
}

/* MQPMO offsets */
enum { PMO_OPTIONS = 8, PMO_RESQ = 32, PMO_RESM = 80 };

static void put_tail(Conn *c, Buf *b, char *md, char *pmo, L len, const void *data, L *cc, L *rc)
{
    size_t n = md_size(md);
    Rd r;
    L opt;
    if (!n) { fail(cc, rc, RC_MD_ERROR); return; }
    if (memcmp(pmo, "PMO ", 4)) { fail(cc, rc, RC_PMO_ERROR); return; }
    if (len < 0) { fail(cc, rc, RC_BUFFER_LENGTH_ERROR); return; }
    memcpy(&opt, pmo + PMO_OPTIONS, 4);
    b_i32(b, opt);
    b_blob(b, md, n);
    b_blob(b, data, (size_t)len);
    if (call(c, b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        md_back(&r, md, n);
        r_name(&r, pmo + PMO_RESQ, 48);
        memcpy(pmo + PMO_RESM, c->qmgr, 48);
    }
}

void MQPUT(L hconn, L hobj, void *md, void *pmo, L len, void *data, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, 'P');
    b_i32(&b, hobj);
    put_tail(c, &b, md, pmo, len, data, cc, rc);
    b_free(&b);
}

void MQPUT1(L hconn, void *objdesc, void *md, void *pmo, L len, void *data, L *cc, L *rc)
{
    Conn *c;
    char *od = objdesc;
    Buf b = {0};
    if (!(c = connected(hconn, cc, rc))) return;
    if (memcmp(od, "OD  ", 4)) { fail(cc, rc, RC_OD_ERROR); return; }
    b_u8(&b, '1');
    b_name(&b, od + OD_NAME, 48);
    b_name(&b, od + OD_QMGR, 48);
    put_tail(c, &b, md, pmo, len, data, cc, rc);
    b_free(&b);
}

/* MQGMO offsets */
enum { GMO_VER = 4, GMO_OPTIONS = 8, GMO_WAIT = 12, GMO_RESQ = 24,
       GMO_MATCH = 72, GMO_TOKEN = 80, GMO_RETLEN = 96 };

void MQGET(L hconn, L hobj, void *mdp, void *gmop, L size, void *data, L *datalen, L *cc, L *rc)
{
    Conn *c;
    char *md = mdp, *gmo = gmop;
    size_t n = md_size(md), k;
    const unsigned char *q;
    L ver, opt, wait, match = 3, full;
    Buf b = {0};
    Rd r;

    if (!(c = connected(hconn, cc, rc))) return;
    if (!n) { fail(cc, rc, RC_MD_ERROR); return; }
    if (memcmp(gmo, "GMO ", 4)) { fail(cc, rc, RC_GMO_ERROR); return; }
    if (size < 0) { fail(cc, rc, RC_BUFFER_LENGTH_ERROR); return; }
    memcpy(&ver, gmo + GMO_VER, 4);
    memcpy(&opt, gmo + GMO_OPTIONS, 4);
    memcpy(&wait, gmo + GMO_WAIT, 4);
    if (ver >= 2) memcpy(&match, gmo + GMO_MATCH, 4);   /* v1: MsgId and CorrelId */
    b_u8(&b, 'G');
    b_i32(&b, hobj);
    b_i32(&b, opt);
    b_i32(&b, match);
    b_i32(&b, wait);
    b_i32(&b, size);
    b_blob(&b, md, n);
    b_blob(&b, ver >= 3 ? gmo + GMO_TOKEN : "", ver >= 3 ? 16 : 0);
    if (call(c, &b, &r, cc, rc) == 0 && !(*cc == CC_FAILED)) {
        full = r_i32(&r);
        md_back(&r, md, n);
        r_name(&r, gmo + GMO_RESQ, 48);
        q = r_blob(&r, &k);
        if (k > (size_t)size) k = (size_t)size;
        memcpy(data, q, k);
        *datalen = full;
        q = r_blob(&r, &k);
        if (ver >= 3 && k == 16) memcpy(gmo + GMO_TOKEN, q, 16);
        if (ver >= 3) { L got = full < size ? full : size; memcpy(gmo + GMO_RETLEN, &got, 4); }
    }
    b_free(&b);
}

/* ------------------------------------------------- MQI: unit of work, attrs */

static void simple(L hconn, int op, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    Rd r;
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, op);
    call(c, &b, &r, cc, rc);
    b_free(&b);
}
void MQCMIT(L hconn, L *cc, L *rc) { simple(hconn, 'M', cc, rc); }
void MQBACK(L hconn, L *cc, L *rc) { simple(hconn, 'B', cc, rc); }

void MQINQ(L hconn, L hobj, L nsel, L *sel, L nint, L *ints, L nchar, char *chars, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    Rd r;
    L i, k;
    size_t n;
    const unsigned char *q;
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, 'Q');
    b_i32(&b, hobj);
    b_i32(&b, nsel);
    for (i = 0; i < nsel; i++) b_i32(&b, sel[i]);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        k = r_i32(&r);
        for (i = 0; i < k; i++) { L v = r_i32(&r); if (i < nint) ints[i] = v; }
        q = r_blob(&r, &n);
        if (n > (size_t)nchar) n = (size_t)nchar;
        if (n) memcpy(chars, q, n);
    }
    b_free(&b);
}

void MQSET(L hconn, L hobj, L nsel, L *sel, L nint, L *ints, L nchar, char *chars, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    Rd r;
    L i;
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, 'S');
    b_i32(&b, hobj);
    b_i32(&b, nsel);
    for (i = 0; i < nsel; i++) b_i32(&b, sel[i]);
    b_i32(&b, nint);
    for (i = 0; i < nint; i++) b_i32(&b, ints[i]);
    b_blob(&b, chars, nchar > 0 ? (size_t)nchar : 0);
    call(c, &b, &r, cc, rc);
    b_free(&b);
}

/* ------------------------------------------------- MQI: publish/subscribe */

/* MQSD offsets */
enum { SD_OPTIONS = 8, SD_NAME = 12, SD_EXPIRY = 112, SD_STRING = 120, SD_SUBNAME = 144, SD_USERDATA = 168,
       SD_CORREL = 192, SD_SELECTOR = 288, SD_LEVEL = 312 };

void MQSUB(L hconn, void *subdesc, L *hobj, L *hsub, L *cc, L *rc)
{
    Conn *c;
    char *sd = subdesc;
    Buf b = {0};
    Rd r;
    L options, expiry, level;
    size_t n;
    const unsigned char *q;

    if (!(c = connected(hconn, cc, rc))) return;
    if (memcmp(sd, "SD  ", 4)) { fail(cc, rc, RC_SD_ERROR); return; }
    memcpy(&options, sd + SD_OPTIONS, 4);
    memcpy(&expiry, sd + SD_EXPIRY, 4);
    memcpy(&level, sd + SD_LEVEL, 4);
    b_u8(&b, 'U');
    b_i32(&b, options);
    b_name(&b, sd + SD_NAME, 48);
    b_charv(&b, sd, SD_STRING);
    b_charv(&b, sd, SD_SUBNAME);
    b_charv(&b, sd, SD_USERDATA);
    b_charv(&b, sd, SD_SELECTOR);
    b_blob(&b, sd + SD_CORREL, 24);
    b_i32(&b, expiry);
    b_i32(&b, level);
    b_i32(&b, *hobj);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        *hsub = r_i32(&r);
        *hobj = r_i32(&r);
        q = r_blob(&r, &n);
        if (n == 24) memcpy(sd + SD_CORREL, q, 24);
    }
    b_free(&b);
}

void MQSUBRQ(L hconn, L hsub, L action, void *srop, L *cc, L *rc)
{
    Conn *c;
    Buf b = {0};
    Rd r;
    L n;
    if (!(c = connected(hconn, cc, rc))) return;
    b_u8(&b, 'R');
    b_i32(&b, hsub);
    b_i32(&b, action);
    if (call(c, &b, &r, cc, rc) == 0 && *cc != CC_FAILED) {
        n = r_i32(&r);
        memcpy((char *)srop + 12, &n, 4);
    }
    b_free(&b);
}

/* --------------------------------------------- MQI: what nobody here calls */

#define NOT_HERE(name, args) void name args { fail(cc, rc, RC_FUNCTION_NOT_SUPPORTED); }
NOT_HERE(MQBEGIN, (L hconn, void *bo, L *cc, L *rc))
NOT_HERE(MQCB, (L hconn, L op, void *cbd, L hobj, void *md, void *gmo, L *cc, L *rc))
NOT_HERE(MQCTL, (L hconn, L op, void *ctlo, L *cc, L *rc))
NOT_HERE(MQSTAT, (L hconn, L type, void *sts, L *cc, L *rc))
NOT_HERE(MQCRTMH, (L hconn, void *o, int64_t *hmsg, L *cc, L *rc))
NOT_HERE(MQDLTMH, (L hconn, int64_t *hmsg, void *o, L *cc, L *rc))
NOT_HERE(MQSETMP, (L hconn, int64_t hmsg, void *o, void *n, void *pd, L type, L len, void *v, L *cc, L *rc))
NOT_HERE(MQINQMP, (L hconn, int64_t hmsg, void *o, void *n, void *pd, L *type, L len, void *v, L *dl, L *cc, L *rc))
NOT_HERE(MQDLTMP, (L hconn, int64_t hmsg, void *o, void *n, L *cc, L *rc))
