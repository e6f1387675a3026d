/* Intel's library for tests: the calls that the driver uses, for a machine that the test describes.

   XPUM_STUB is a list of words: `crash` (on initialisation), `tiles` (the second card has statistics of its two tiles
   only), `later` (a release with more statistics, so that entries lie further apart), `poor` (no processes, no limits,
   no statistics), `nameless` (a uuid of noughts), `wild` (numbers that cannot be). */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define DISABLED 33
#define UNSUPPORTED 61

static int is(const char *word) { const char *said = getenv("XPUM_STUB"); return said && strstr(said, word) != NULL; }

int xpumInit(void) { if (is("crash")) abort(); return OK; }
int xpumGetDeviceList(void *list, int *count) { if (list) return 1; *count = 2; return OK; }

struct properties { int32_t card; struct { int name; char value[256]; } one[100]; int count; };
static void set(struct properties *found, int name, const char *text) {
  found->one[found->count].name = name;
  snprintf(found->one[found->count++].value, 256, "%s", text);
}
int xpumGetDeviceProperties(int32_t card, struct properties *found) {
  found->card = card; found->count = 0;
  set(found, 1, "Intel(R) Data Center GPU Max 1550");
  set(found, 3, is("nameless") ? "00000000-0000-0000-0000-000000000000"
                               : card ? "00000000-0000-009a-0000-00020bd58086" : "00000000-0000-0029-0000-002f0bd58086");
  set(found, 6, card ? "0000:9a:00.0" : "0000:29:00.0");
  set(found, 13, "I915_23.8.20");
  set(found, 15, "PVC2_1.23374");
  set(found, 21, "1600");
  set(found, 22, "68719476736");
  return OK;
}
struct limits { bool enabled; int32_t power, interval; };
int xpumGetDevicePowerLimits(int32_t card, int32_t tile, struct limits *found) {
  if (is("poor") || tile != -1) return UNSUPPORTED;
  found->enabled = true; found->power = 600000; found->interval = 10; return OK;
}
struct statistic { int kind; bool counter; uint64_t value, accumulated, least, mean, most; uint32_t scale; };
struct header { int32_t card; bool tile; int32_t number, count; };
static void entry(char *place, int32_t card, int tile, uint64_t by) {
  struct header *head = (struct header *)place;
  struct statistic *one = (struct statistic *)(place + sizeof *head);
  struct statistic all[] = {
    {0, false, 9900, 0, 0, is("wild") ? 25000 : 5000 * by, 9900, 100},        /* percent */
    {4, false, 40000, 0, 0, is("wild") ? 900000 : 15062 * by, 50000, 100},    /* watts */
    {5, true, 17, 4567890 * by, 0, 0, 0, 1},                                  /* millijoules */
    {6, false, 155000, 0, 0, 1, 1, 100},                                      /* megahertz */
    {7, false, is("wild") ? 25500 : 4200 + 300 * by, 0, 0, 1, 1, 100},        /* degrees */
    {8, false, 2147483648ULL * by, 0, 0, 1, 1, 1},                            /* bytes */
    {10, false, 1, 0, 0, 3000, 1, 100},                                       /* percent of bandwidth */
  };
  head->card = card; head->tile = tile >= 0; head->number = tile < 0 ? 0 : tile; head->count = sizeof all / sizeof *all;
  memcpy(one, all, sizeof all);
}
int xpumGetStats(int32_t card, char *room, uint32_t *count, uint64_t *begin, uint64_t *end, uint64_t session) {
  size_t step = sizeof(struct header) + (is("later") ? 44 : 39) * sizeof(struct statistic);
  if (is("poor")) return DISABLED;
  if (card == 1 && is("tiles")) { entry(room, card, 0, 1); entry(room + step, card, 1, 3); *count = 2; }
  else { entry(room, card, -1, 2); *count = 1; }
  return OK;
}
struct process { uint32_t pid; uint64_t memory, shared; int engine; char name[256]; };
int xpumGetDeviceProcessState(int32_t card, struct process *room, uint32_t *count) {
  if (is("poor")) return UNSUPPORTED;
  *count = card ? 0 : 2;
  if (*count) { room[0].pid = 4242; room[0].memory = 3ULL << 30; room[1].pid = 4343; room[1].memory = 1ULL << 20; }
  return OK;
}
