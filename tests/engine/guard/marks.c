/* Marks for callgrind, called from Python: counting starts, and what was counted since the last mark is written out. */
#include <valgrind/callgrind.h>

void start(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void mark(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
