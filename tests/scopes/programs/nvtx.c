/* A program that uses NVTX as its header has it: nvtx CASE. Each case is one thing to be shown. */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>

#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static nvtxEventAttributes_t event(const char *name)
{
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name;
    return event;
}

static void levels(void)
{
    int outer = nvtxRangePushA("outer");
    int inner = nvtxRangePushW(L"d\u00e9j\u00e0 vu");
    int popped_inner = nvtxRangePop();
    int popped_outer = nvtxRangePop();
    nvtxMarkA("mark");
    printf("%d %d %d %d\n", outer, inner, popped_inner, popped_outer);
}

static void *end_range(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void ranges(void)
{
    nvtxRangeId_t first = nvtxRangeStartA("first");
    nvtxRangeId_t second = nvtxRangeStartA("second");
    pthread_t thread;
    pthread_create(&thread, NULL, end_range, &first);
    pthread_join(thread, NULL);
    nvtxRangeEnd(second);
    nvtxRangeEnd(second);
    nvtxRangeEnd(12345);
}

static void domains(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("training");
    nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "step");
    nvtxStringHandle_t wide = nvtxDomainRegisterStringW(domain, L"wide step");
    nvtxEventAttributes_t step = event(NULL);
    nvtxDomainNameCategoryA(domain, 7, "io");
    step.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    step.message.registered = name;
    step.category = 7;
    step.colorType = NVTX_COLOR_ARGB;
    step.color = 0xff76b900;
    step.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    step.payload.llValue = -5;
    nvtxDomainRangePushEx(domain, &step);
    nvtxRangePushA("of no domain");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    step.message.registered = wide;
    nvtxDomainMarkEx(domain, &step);
    nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &step));
    nvtxDomainDestroy(domain);
}

/* Everything that a program can do wrong and still expect to go on. */
static void wrong(void)
{
    nvtxEventAttributes_t bad = event(NULL);
    static char megabyte[1 << 20];
    int number;
    memset(megabyte, 'x', sizeof megabyte - 1);
    nvtxRangePop();
    nvtxRangePushA(NULL);
    nvtxRangePushW(NULL);
    nvtxRangePushEx(NULL);
    nvtxRangePushEx(&bad);
    bad.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    bad.message.registered = (nvtxStringHandle_t)0x1234567;
    nvtxDomainRangePushEx((nvtxDomainHandle_t)0x7654321, &bad);
    bad.messageType = 1000;
    bad.payloadType = 1000;
    nvtxMarkEx(&bad);
    bad.size = 4;
    nvtxMarkEx(&bad);
    bad.version = 200;
    nvtxMarkEx(&bad);
    for (number = 0; number < 10; number++) {
        nvtxRangePop();
    }
    nvtxRangePushA(megabyte);
    nvtxRangePop();
    for (number = 0; number < 500; number++) {
        nvtxRangePushA("deep");
    }
    for (number = 0; number < 600; number++) {
        nvtxRangePop();
    }
    for (number = 0; number < 5000; number++) {
        char name[40];
        nvtxDomainHandle_t domain;
        snprintf(name, sizeof name, "domain %d", number);
        domain = nvtxDomainCreateA(name);
        bad = event("in a domain");
        nvtxDomainRangePushEx(domain, &bad);
        nvtxDomainRangePop(domain);
    }
    for (number = 0; number < 10000; number++) {
        nvtxRangeStartA("never ended");
    }
    nvtxNameCategoryA(1, NULL);
    nvtxNameOsThreadA(1, NULL);
    nvtxDomainCreateA(NULL);
    nvtxDomainRegisterStringA(NULL, NULL);
    nvtxRangePushA("still alive");
    nvtxRangePop();
}

static void *speak(void *unused)
{
    int number;
    (void)unused;
    for (number = 0; number < 200; number++) {
        nvtxRangePushA("outer of a thread");
        nvtxRangePushA("inner of a thread");
        nvtxRangePop();
        nvtxRangePop();
    }
    return NULL;
}

static void threads(void)
{
    pthread_t threads[8];
    int number;
    for (number = 0; number < 8; number++) {
        pthread_create(&threads[number], NULL, speak, NULL);
    }
    for (number = 0; number < 8; number++) {
        pthread_join(threads[number], NULL);
    }
}

static void forks(void)
{
    pid_t child;
    int status = 0;
    nvtxRangePushA("parent");
    child = fork();
    if (child == 0) {
        nvtxRangePushA("child");
        nvtxMarkA("child");
        nvtxRangePop();
        nvtxRangePop();
        exit(3);
    }
    waitpid(child, &status, 0);
    nvtxRangePop();
    printf("%d\n", WEXITSTATUS(status));
}

/* A child that becomes another program says what that does. */
static void executes(char *program)
{
    pid_t child;
    nvtxRangePushA("before the child");
    child = fork();
    if (child == 0) {
        char *const words[] = {program, "levels", NULL};
        FILE *list = fopen(getenv("WARPGAUGE_RUNTIME_CONFIG_PATH"), "a");
        fprintf(list, "%d:1\n", (int)getpid());
        fclose(list);
        execv("/proc/self/exe", words);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    nvtxRangePop();
}

static void on_signal(int number)
{
    (void)number;
    nvtxRangePushA("in a signal handler");
    nvtxRangePop();
}

static void signals(void)
{
    struct itimerval every = {{0, 100}, {0, 100}};
    struct itimerval never = {{0, 0}, {0, 0}};
    int number;
    /* A handler that comes while NVTX looks for its library would wait for itself. */
    nvtxMarkA("first");
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &every, NULL);
    for (number = 0; number < 200000; number++) {
        nvtxRangePushA("interrupted");
        nvtxRangePop();
    }
    setitimer(ITIMER_REAL, &never, NULL);
    puts("done");
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "";
    setlocale(LC_ALL, "C.UTF-8");
    if (strcmp(name, "levels") == 0) {
        levels();
    } else if (strcmp(name, "ranges") == 0) {
        ranges();
    } else if (strcmp(name, "domains") == 0) {
        domains();
    } else if (strcmp(name, "wrong") == 0) {
        wrong();
    } else if (strcmp(name, "threads") == 0) {
        threads();
    } else if (strcmp(name, "forks") == 0) {
        forks();
    } else if (strcmp(name, "executes") == 0) {
        executes(words[0]);
    } else if (strcmp(name, "signals") == 0) {
        signals();
    } else {
        return 2;
    }
    return 0;
}
