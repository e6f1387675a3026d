/* A card maker's library for tests: the calls that the driver uses, for machines that the test describes.

   NVML_STUB is a list of words: `crash` (on initialisation), `hang` (when asked for power), `lost` (the second card has
   fallen off the bus), `ones` (what is not available is all ones), `poor` (an old card that knows little), `mig` (the
   first card is divided), `noise` (prints), `wild` (numbers that cannot be). Cards: ordinal 0 has minor 1 and ordinal 1
   has minor 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define UNSUPPORTED 3
#define LOST 15

static int is(const char *word) { const char *said = getenv("NVML_STUB"); return said && strstr(said, word) != NULL; }
static long of(void *card) { return (long)card - 1; }
static int poor(void) { return is("poor") ? UNSUPPORTED : OK; }

int nvmlInit_v2(void) {
  if (is("crash")) abort();
  if (is("noise")) { printf("initialising\n{\"reading\": 1}\n"); fflush(stdout); }
  return OK;
}
const char *nvmlErrorString(int status) {
  return status == LOST ? "GPU is lost" : status == UNSUPPORTED ? "Not Supported" : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.1"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card) {
  if (index == 1 && is("lost")) return LOST;
  *card = (void *)(long)(index + 1);
  return OK;
}
int nvmlDeviceGetUUID(void *card, char *text, unsigned size) {
  if (of(card) >= 100) snprintf(text, size, "MIG-%ld", of(card));
  else snprintf(text, size, "GPU-%ld", of(card));
  return OK;
}
int nvmlDeviceGetMinorNumber(void *card, unsigned *minor) { *minor = 1 - of(card); return OK; }
int nvmlDeviceGetName(void *card, char *text, unsigned size) { snprintf(text, size, "Stub %ld", of(card)); return OK; }
int nvmlDeviceGetArchitecture(void *card, unsigned *number) { *number = 7; return poor(); }
int nvmlDeviceGetVbiosVersion(void *card, char *text, unsigned size) { snprintf(text, size, "1.2"); return poor(); }
int nvmlDeviceGetPciInfo_v3(void *card, void *pci) {
  snprintf((char *)pci + 36, 32, "00000000:%02lX:00.0", 0x41 - of(card)); return OK;
}
int nvmlDeviceGetMigMode(void *card, unsigned *now, unsigned *later) {
  *now = *later = is("mig") && of(card) == 0; return is("poor") ? UNSUPPORTED : OK;
}
int nvmlDeviceGetMaxMigDeviceCount(void *card, unsigned *count) { *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *card, unsigned index, void **part) {
  if (index != 1 && index != 4) return 6;
  *part = (void *)(long)(101 + index);
  return OK;
}
int nvmlDeviceGetGpuInstanceId(void *part, unsigned *number) { *number = of(part) - 100; return OK; }
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *memory) {
  memory[0] = of(card) >= 100 ? 10ULL << 30 : 80ULL << 30; memory[2] = 5ULL << 30; memory[1] = memory[0] - memory[2];
  if (is("ones")) memory[2] = ~0ULL;
  return OK;
}
int nvmlDeviceGetUtilizationRates(void *card, unsigned *rates) {
  rates[0] = is("wild") ? 250 : 60; rates[1] = 20; return is("mig") && of(card) == 0 ? UNSUPPORTED : OK;
}
int nvmlDeviceGetPowerUsage(void *card, unsigned *milliwatts) {
  if (is("hang")) sleep(600);
  *milliwatts = is("wild") ? 900000 : is("ones") ? ~0U : 250000; return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(void *card, unsigned *milliwatts) { *milliwatts = 400000; return OK; }
int nvmlDeviceGetPowerManagementLimitConstraints(void *card, unsigned *least, unsigned *most) {
  *least = 100000; *most = 400000; return OK;
}
int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *mj) { *mj = 1234567; return poor(); }
int nvmlDeviceGetTemperature(void *card, unsigned sensor, unsigned *celsius) {
  *celsius = is("wild") ? 255 : 45; return OK;
}
int nvmlDeviceGetClockInfo(void *card, unsigned kind, unsigned *mhz) { *mhz = kind == 1 ? 1410 : 1215; return OK; }
int nvmlDeviceGetMaxClockInfo(void *card, unsigned kind, unsigned *mhz) { *mhz = kind == 1 ? 1500 : 1215; return OK; }
int nvmlDeviceGetFanSpeed(void *card, unsigned *percent) { *percent = 30; return poor(); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *bits) { *bits = 0x24; return OK; }
int nvmlDeviceGetViolationStatus(void *card, unsigned policy, unsigned long long *times) {
  times[1] = 2500000000ULL * (policy + 1); return poor();
}
int nvmlDeviceGetTotalEccErrors(void *card, unsigned kind, unsigned since, unsigned long long *count) {
  *count = kind ? 1 : 3; return poor();
}
struct running { unsigned pid; unsigned long long memory; unsigned instance, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct running *room) {
  *count = of(card) == 0 ? 2 : 0;
  if (*count) {
    room[0].pid = 4242; room[0].memory = is("ones") ? ~0ULL : 1ULL << 30;
    room[1].pid = 4343; room[1].memory = 2ULL << 30;
  }
  return OK;
}
struct share { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(void *card, struct share *room, unsigned *count, unsigned long long seen) {
  if (!room) { *count = 4; return 7; }
  *count = 3;
  memset(room, 0, *count * sizeof *room);
  room[0].pid = 4242; room[0].time = seen + 1; room[0].sm = 40; room[0].memory = 10;
  room[1].pid = 4242; room[1].time = seen + 2; room[1].sm = 60; room[1].memory = 30;
  room[2].pid = 4343; room[2].time = seen + 2; room[2].sm = 10; room[2].memory = 0;
  return OK;
}
