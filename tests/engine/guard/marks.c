/* Called from Python under callgrind: starts the counting, and writes out what was counted since the last mark. */
#include <valgrind/callgrind.h>

void start(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void mark(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
