// Which instruction sets there are and which of them this machine runs.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

// Declares a constant that every instruction set defines in its own namespace, and picks that of one by its name.
#ifdef OMKL_X86
#define OMKL_DECLARE_ISA(DECLARATION) \
  namespace baseline {                \
  extern DECLARATION;                 \
  }                                   \
  namespace avx2 {                    \
  extern DECLARATION;                 \
  }                                   \
  namespace avx512 {                  \
  extern DECLARATION;                 \
  }
#define OMKL_SELECT_ISA(ISA, NAME) \
  (require_supported(ISA), ISA == "avx512" ? avx512::NAME : ISA == "avx2" ? avx2::NAME : baseline::NAME)
#else
#define OMKL_DECLARE_ISA(DECLARATION) \
  namespace baseline {                \
  extern DECLARATION;                 \
  }
#define OMKL_SELECT_ISA(ISA, NAME) (require_supported(ISA), baseline::NAME)
#endif

namespace omkl {

// From the slowest to the fastest.
inline std::vector<std::string> supported() {
  std::vector<std::string> names{"baseline"};
#ifdef OMKL_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    names.push_back("avx2");
  if (names.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    names.push_back("avx512");
#endif
  return names;
}

inline void require_supported(const std::string &isa) {
  std::string all;
  for (const auto &name : supported()) {
    if (name == isa) return;
    all += (all.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument("this machine runs the instruction sets " + all + ", got '" + isa + "'");
}

}  // namespace omkl
