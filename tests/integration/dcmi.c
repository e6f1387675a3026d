/* DCMI for ipmi_sim, which has none: the power reading and what the controller can do.

   The file named in the settings is read at each request. Four numbers: the power now, the lowest, the highest and the
   mean; or a word: `refuse` (the controller answers that it cannot), `off` (it does not measure). Without the file it says
   nothing at all: the request hangs. */
#include <OpenIPMI/lanserv.h>
#include <OpenIPMI/mcserv.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char place[4096];

static unsigned put(unsigned char *room, unsigned at, uint32_t value, unsigned bytes) {
  while (bytes--) { room[at++] = value & 0xff; value >>= 8; }
  return at;
}

static void answer(lmc_data_t *mc, msg_t *msg, unsigned char *room, unsigned *size, void *data) {
  static const unsigned char able[] = {0, 0xdc, 1, 5, 2, 0, 1, 7};
  unsigned watts[4] = {0}, at;
  char word[16] = "";
  FILE *file;
  if (msg->cmd == 1) { memcpy(room, able, sizeof able); *size = sizeof able; return; }
  while (!(file = fopen(place, "r"))) sleep(1);
  if (fscanf(file, "%u %u %u %u", &watts[0], &watts[1], &watts[2], &watts[3]) != 4) {
    rewind(file);
    if (fscanf(file, "%15s", word) != 1) word[0] = 0;
  }
  fclose(file);
  if (msg->cmd != 2 || !strcmp(word, "refuse")) { room[0] = 0xc1; *size = 1; return; }
  room[0] = 0; room[1] = 0xdc; at = 2;
  for (int i = 0; i < 4; i++) at = put(room, at, watts[i], 2);
  at = put(room, at, (uint32_t)time(NULL), 4);
  at = put(room, at, 1000, 4);
  room[at++] = strcmp(word, "off") ? 0x40 : 0;
  *size = at;
}

int ipmi_sim_module_print_version(sys_data_t *sys, char *options) { return 0; }

int ipmi_sim_module_init(sys_data_t *sys, const char *options) {
  snprintf(place, sizeof place, "%s", options);
  ipmi_emu_register_group_extension_handler(0xdc, answer, NULL);
  return 0;
}
