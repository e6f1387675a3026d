/* A farm of processes to sample: all sleep, some work when told to.
 *
 * In C because a node has thousands: each of these takes a fifth of a megabyte. It does what the lines on standard
 * input say, and farm.py decides what they are:
 *
 *   session UID COUNT THREADS [PATH...]   COUNT processes of one user in a session of their own, with THREADS
 *                                         threads each; PATHs are the cgroup.procs files they are put into
 *   pids                                  answers `pids N N ...`: all processes, as they were started
 *   poke PERCENT                          so many of the processes of ordinary users work; answers `done`
 *   churn COUNT                           the oldest COUNT sessions end and are started anew; answers `done`
 *
 * The end of standard input ends all of them, however the owner of the farm died.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PERSON 1000
#define PAGE 4096L
/* A little more than one tick of the kernel's 100 Hz, so that the CPU time in the stat line moves at every poke. */
#define BURN 10200000L
#define OWN_PAGES 32
#define AREAS 16
#define AT_ONCE 16

static const char *names[] = {"python3", "lmp_mpi", "gmx_mpi",         "vasp_std", "orterun",
                              "bash",    "R",       "julia", "ray::worker (x)", "nf core"};

struct session {
  int uid, count, threads;
  char *paths;
  pid_t *pids;
};

static struct session *sessions;
static int session_count, oldest;
static int life[2], answers[2], scratch;
static FILE *heard;
static char *fresh; /* a page that is given back and touched again at every poke: one page fault */
static long own_index;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static long used(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void work(int signal_number) {
  (void)signal_number;
  long end = used() + BURN;
  madvise(fresh, PAGE, MADV_DONTNEED);
  fresh[0] = 1;
  while (used() < end) {
  }
  if (pwrite(scratch, fresh, PAGE, own_index * PAGE) != PAGE || write(answers[1], ".\n", 2) != 2) _exit(1);
}

static void *idle(void *nothing) {
  for (;;) pause();
  return nothing;
}

static void start_threads(int count) {
  pthread_attr_t small;
  sigset_t poke, before;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  /* Only the first thread works, so only it may be interrupted. */
  sigemptyset(&poke);
  sigaddset(&poke, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &poke, &before);
  for (int i = 1; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &small, idle, NULL)) fail("thread");
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Memory and mappings of a small program, so that reading them costs what it costs elsewhere. */
static void grow(void) {
  for (int i = 0; i < AREAS; i++) {
    char *area = mmap(NULL, 8 * PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area != MAP_FAILED && i % 2 == 0) area[0] = 1;
  }
  fresh = mmap(NULL, (OWN_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) fail("mmap");
  for (int i = 0; i <= OWN_PAGES; i++) fresh[i * PAGE] = 1;
}

/* One process, until the farm ends. */
static void live(const struct session *own, int place, long index) {
  char hello[64], byte;
  own_index = index;
  prctl(PR_SET_NAME, own->uid < FIRST_PERSON ? "systemd-thing" : names[index / 3 % 10]);
  grow();
  if (geteuid() == 0 && own->uid > 0 && (setgid(own->uid) || setuid(own->uid))) fail("setuid");
  /* As after an exec: its files in /proc belong to its user. */
  prctl(PR_SET_DUMPABLE, 1);
  signal(SIGUSR1, work);
  start_threads(own->threads);
  int size = snprintf(hello, sizeof hello, "%d %d\n", getpid(), place);
  if (write(answers[1], hello, size) != size) _exit(1);
  while (read(life[0], &byte, 1) < 0) {
  }
  _exit(0);
}

static void join(const char *paths) {
  char *copy = strdup(paths), *rest = copy, *path, own[16];
  int size = snprintf(own, sizeof own, "%d", getpid());
  while ((path = strsep(&rest, " "))) {
    if (!*path) continue;
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, own, size) != size) fail(path);
    close(file);
  }
  free(copy);
}

/* The first process of a session starts the others, so that they inherit its groups. */
static void start(int number) {
  struct session *own = &sessions[number];
  pid_t leader = fork();
  if (leader < 0) fail("fork");
  if (leader == 0) {
    close(life[1]);
    setsid();
    join(own->paths);
    for (int place = 1; place < own->count; place++) {
      pid_t member = fork();
      if (member < 0) fail("fork");
      if (member == 0) live(own, place, number * 8L + place);
    }
    live(own, 0, number * 8L);
  }
  for (int i = 0; i < own->count; i++) {
    int pid, place;
    char hello[64];
    if (!fgets(hello, sizeof hello, heard) || sscanf(hello, "%d %d", &pid, &place) != 2) fail("a process did not start");
    own->pids[place] = pid;
  }
}

static void add(char *words) {
  int at = 0;
  sessions = realloc(sessions, (session_count + 1) * sizeof *sessions);
  struct session *made = &sessions[session_count];
  if (sscanf(words, "%d %d %d %n", &made->uid, &made->count, &made->threads, &at) != 3) fail("session");
  made->paths = strdup(words + at);
  made->pids = calloc(made->count, sizeof *made->pids);
  start(session_count++);
}

static void hear(void) {
  char line[8];
  if (!fgets(line, sizeof line, heard)) fail("poke");
}

/* A few at a time: the machine has other users. */
static void poke(double percent) {
  long index = 0, poked = 0;
  for (int s = 0; s < session_count; s++) {
    if (sessions[s].uid < FIRST_PERSON) continue;
    for (int i = 0; i < sessions[s].count; i++, index++) {
      if ((long)((index + 1) * percent / 100) == (long)(index * percent / 100)) continue;
      if (kill(sessions[s].pids[i], SIGUSR1)) fail("poke");
      if (++poked > AT_ONCE) {
        hear();
        poked--;
      }
    }
  }
  for (; poked; poked--) hear();
}

static void churn(int count) {
  for (; count; count--) {
    struct session *ending = &sessions[oldest];
    for (int i = 0; i < ending->count; i++) kill(ending->pids[i], SIGKILL);
    start(oldest);
    oldest = (oldest + 1) % session_count;
  }
}

static void say_pids(void) {
  fputs("pids", stdout);
  for (int s = 0; s < session_count; s++)
    for (int i = 0; i < sessions[s].count; i++) printf(" %d", sessions[s].pids[i]);
  putchar('\n');
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  struct rlimit most;
  if (pipe(life) || pipe(answers) || !(heard = fdopen(answers[0], "r"))) fail("pipe");
  if ((scratch = open("/tmp", O_TMPFILE | O_RDWR, 0600)) < 0) fail("/tmp");
  if (!getrlimit(RLIMIT_NPROC, &most)) {
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NPROC, &most);
  }
  /* Ctrl-C is the owner's; who ends leaves nothing behind, members of an ended session included. */
  signal(SIGINT, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  while (getline(&line, &room, stdin) > 0) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "session ", 8)) {
      add(line + 8);
      continue;
    }
    if (!strcmp(line, "pids")) {
      say_pids();
    } else {
      if (!strncmp(line, "poke ", 5)) poke(atof(line + 5));
      else if (!strncmp(line, "churn ", 6)) churn(atoi(line + 6));
      else fail(line);
      puts("done");
    }
    fflush(stdout);
  }
  close(life[1]);
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return 0;
}
