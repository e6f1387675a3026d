/* Habana's library for tests: the calls that the driver uses, for a machine that the test describes.

   HLML_STUB is a list of words: `crash` (on initialisation), `lost` (the second card is), `poor` (an old release that
   knows little), `wild` (numbers that cannot be), `unloaded` (no driver). Later releases fill larger structures: so does
   this one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define UNSUPPORTED 3
#define UNLOADED 9
#define LOST 15

static int is(const char *word) { const char *said = getenv("HLML_STUB"); return said && strstr(said, word) != NULL; }
static long of(void *card) { return (long)card - 1; }
static int poor(void) { return is("poor") ? UNSUPPORTED : OK; }

int hlml_init(void) { if (is("crash")) abort(); return is("unloaded") ? UNLOADED : OK; }
int hlml_device_get_count(unsigned *count) { *count = 2; return OK; }
int hlml_device_get_handle_by_index(unsigned index, void **card) {
  if (index == 1 && is("lost")) return LOST;
  *card = (void *)(long)(index + 1); return OK;
}
int hlml_get_driver_version(char *text, unsigned size) { snprintf(text, size, "1.18.0"); return OK; }
int hlml_get_hlml_version(char *text, unsigned size) { snprintf(text, size, "1.18"); return poor(); }
int hlml_get_fw_os_version(void *card, char *text, unsigned size) { snprintf(text, size, "hl-gaudi2"); return poor(); }
int hlml_device_get_name(void *card, char *text, unsigned size) { snprintf(text, size, "HL-225"); return OK; }
int hlml_device_get_uuid(void *card, char *text, unsigned size) {
  snprintf(text, size, "01P4-HL2080A0-15-%02ld", of(card)); return OK;
}
int hlml_device_get_minor_number(void *card, unsigned *minor) { *minor = 1 - of(card); return OK; }
int hlml_device_get_pci_info(void *card, char *found) {
  memset(found, 0, 120);
  snprintf(found + 4, 15, "0000:%02lx:00.0", 0x19 + of(card)); return OK;
}
int hlml_device_get_clock_info(void *card, int kind, unsigned *mhz) { *mhz = kind == 0 ? 1600 : 1; return OK; }
int hlml_device_get_max_clock_info(void *card, int kind, unsigned *mhz) { *mhz = kind == 0 ? 1800 : 1; return OK; }
int hlml_device_get_utilization_rates(void *card, unsigned *percent) {
  percent[0] = is("wild") ? 101 : 75; percent[1] = 7; return OK;
}
int hlml_device_get_memory_info(void *card, unsigned long long *sizes) {
  sizes[0] = 90ULL << 30; sizes[1] = 96ULL << 30; sizes[2] = 6ULL << 30; sizes[3] = 1; return OK;
}
int hlml_device_get_temperature(void *card, int sensor, unsigned *celsius) {
  *celsius = is("wild") ? 255 : sensor == 0 ? 41 : 35; return OK;
}
int hlml_device_get_power_usage(void *card, unsigned *milliwatts) { *milliwatts = is("wild") ? 999000 : 412500; return OK; }
int hlml_device_get_power_management_default_limit(void *card, unsigned *milliwatts) { *milliwatts = 600000; return OK; }
int hlml_device_get_total_energy_consumption(void *card, unsigned long long *millijoules) {
  *millijoules = 7654321; return poor();
}
int hlml_device_get_total_ecc_errors(void *card, int kind, int since, unsigned long long *count) {
  *count = kind ? 2 : 5; return since == 1 ? poor() : UNSUPPORTED;
}
int hlml_device_get_current_clocks_throttle_reasons(void *card, unsigned long long *bits) { *bits = 3; return poor(); }
