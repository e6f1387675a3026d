/* AMD's library for tests: the calls that the driver uses, for a machine that the test describes.

   ROCM_STUB is a list of words: `crash` (on initialisation), `poor` (an old card that knows little), `nameless` (no
   unique ids), `parts` (both are partitions of one card), `dies` (the second is a second die: no power of its own), `old`
   (an early release: no flag before the clocks, no process by card), `wild` (numbers that cannot be), `ones` (what is
   not available is all ones), `refuse` (one call fails). Two cards; process 4242 is on both, 4343 on the second, 4444 has just ended. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define UNSUPPORTED 2
#define NOT_FOUND 10
#define BUSY 16

static int is(const char *word) { const char *said = getenv("ROCM_STUB"); return said && strstr(said, word) != NULL; }
static int poor(void) { return is("poor") ? UNSUPPORTED : OK; }

int rsmi_init(uint64_t flags) { if (is("crash")) abort(); return flags ? 1 : OK; }
int rsmi_num_monitor_devices(uint32_t *count) { *count = 2; return OK; }
int rsmi_version_str_get(int component, char *text, uint32_t size) { snprintf(text, size, "6.7.0"); return OK; }
int rsmi_dev_name_get(uint32_t card, char *text, size_t size) { snprintf(text, size, "Instinct %u", card); return OK; }
int rsmi_dev_vbios_version_get(uint32_t card, char *text, uint32_t size) { snprintf(text, size, "113-D7"); return OK; }
int rsmi_dev_unique_id_get(uint32_t card, uint64_t *id) {
  *id = is("parts") ? 0xdeadbeef00000001ULL : 0xdeadbeef00000001ULL + card;
  return is("nameless") ? UNSUPPORTED : OK;
}
/* Domain 1, bus 0xc1 or 0x43, device 0x12 (five bits), function 0. */
int rsmi_dev_pci_id_get(uint32_t card, uint64_t *place) {
  *place = 1ULL << 32 | (card ? 0x43ULL : 0xc1ULL) << 8 | 0x12ULL << 3; return OK;
}
int rsmi_dev_drm_render_minor_get(uint32_t card, uint32_t *minor) { *minor = 129 - card; return OK; }
int rsmi_dev_busy_percent_get(uint32_t card, uint32_t *percent) { *percent = is("ones") ? ~0U : is("wild") ? 250 : 60; return OK; }
int rsmi_dev_memory_busy_percent_get(uint32_t card, uint32_t *percent) { *percent = 20; return poor(); }
int rsmi_dev_memory_total_get(uint32_t card, int kind, uint64_t *size) {
  *size = kind == 0 ? (card ? 64ULL : 128ULL) << 30 : 1; return OK;
}
int rsmi_dev_memory_usage_get(uint32_t card, int kind, uint64_t *size) {
  *size = is("ones") ? ~0ULL : kind == 0 ? 3ULL << 30 : 1; return OK;
}
int rsmi_dev_temp_metric_get(uint32_t card, uint32_t sensor, int metric, int64_t *milli) {
  if (metric != 0 || (sensor == 0 && card == 1)) return UNSUPPORTED;
  *milli = is("wild") ? 255000 : sensor == 2 ? 51500 : sensor == 1 ? 47250 : 45000;
  return OK;
}
int rsmi_dev_fan_speed_get(uint32_t card, uint32_t sensor, int64_t *speed) { *speed = 51; return poor(); }
int rsmi_dev_fan_speed_max_get(uint32_t card, uint32_t sensor, uint64_t *most) { *most = 255; return OK; }
int rsmi_dev_current_socket_power_get(uint32_t card, uint64_t *microwatts) {
  *microwatts = 555000000; return card == 0 && !is("old") && !is("dies") ? OK : UNSUPPORTED;
}
int rsmi_dev_power_ave_get(uint32_t card, uint32_t sensor, uint64_t *microwatts) {
  if (is("refuse")) return BUSY;
  *microwatts = is("ones") ? ~0ULL : is("dies") && card ? 0 : is("wild") ? 9000000000ULL : 250500000;
  return sensor == 0 ? OK : UNSUPPORTED;
}
int rsmi_dev_power_cap_get(uint32_t card, uint32_t sensor, uint64_t *microwatts) {
  *microwatts = is("dies") && card ? 0 : 600000000; return OK;
}
int rsmi_dev_power_cap_range_get(uint32_t card, uint32_t sensor, uint64_t *most, uint64_t *least) {
  *most = is("dies") && card ? 0 : 750000000; *least = 0; return OK;
}
int rsmi_dev_energy_count_get(uint32_t card, uint64_t *steps, float *resolution, uint64_t *time) {
  *steps = is("dies") && card ? 0 : 1000000; *resolution = 15.259f; *time = 1; return poor();
}
struct clocks { uint8_t sleeps; uint32_t count, current; uint64_t hertz[33]; };
struct old_clocks { uint32_t count, current; uint64_t hertz[32]; };
int rsmi_dev_gpu_clk_freq_get(uint32_t card, int kind, void *room) {
  static const uint64_t hertz[] = {500000000, 1300000000, 2100000000};
  if (is("old")) {
    struct old_clocks *found = room;
    /* One clock only is what could be mistaken for a flag. */
    found->count = kind ? 1 : 3; found->current = kind ? 0 : 1; memcpy(found->hertz, hertz, sizeof hertz);
  } else {
    struct clocks *found = room;
    found->sleeps = card; found->count = kind ? 1 : 3; found->current = kind ? 0 : 1;
    memcpy(found->hertz, hertz, sizeof hertz);
  }
  return poor();
}
int rsmi_dev_ecc_count_get(uint32_t card, uint64_t block, uint64_t *found) {
  if (block != 1) return UNSUPPORTED;
  found[0] = 3; found[1] = 1; found[2] = 9; return poor();
}
struct process { uint32_t pid, pasid; uint64_t vram, sdma; uint32_t occupancy; };
/* The list of all says who, and of memory nothing that is true. */
int rsmi_compute_process_info_get(struct process *room, uint32_t *count) {
  static const uint32_t pids[] = {4343, 4242, 4444};
  if (!room) { *count = 3; return OK; }
  for (int i = 0; i < 3; i++) { memset(&room[i], 0, sizeof room[i]); room[i].pid = pids[i]; }
  *count = 3; return OK;
}
int rsmi_compute_process_gpus_get(uint32_t pid, uint32_t *room, uint32_t *count) {
  if (pid == 4444) return NOT_FOUND;
  if (!room) { *count = pid == 4242 ? 2 : 1; return OK; }
  if (pid == 4242) { room[0] = 0; room[1] = 1; } else room[0] = 1;
  return OK;
}
int rsmi_compute_process_info_by_device_get(uint32_t pid, uint32_t card, struct process *found) {
  if (is("old")) return UNSUPPORTED;
  found->pid = pid; found->vram = pid == 4242 ? (card + 1ULL) << 30 : 5ULL << 20;
  found->occupancy = pid == 4242 ? 40 : 0xFFFFFFFF; return OK;
}
