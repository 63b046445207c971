// Memory that the engine allocates: working memory of a thread, and what is kept beside the arrays of a Problem.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "problem.hpp"

namespace omkl {

// The first double at `memory` or after it that starts a register.
inline double *aligned(double *memory) {
  return memory + (64 - reinterpret_cast<uintptr_t>(memory) % 64) % 64 / sizeof(double);
}

// Where a thread begins to number its uses of working memory.
inline uint64_t first_use() {
  static std::atomic<uint64_t> threads{0};
  return ++threads << 40;
}

// One block of aligned doubles per thread, which grows when a larger problem needs more.
inline Scratch thread_memory(long N, long P, long extra) {
  thread_local std::vector<double> memory;
  thread_local uint64_t use = first_use();
  const long Np = padded(N);
  const size_t size = static_cast<size_t>(N * 2 * P + P + 10 * Np + padded(extra) + LANES);
  if (memory.size() < size) memory.resize(size);
  double *a = aligned(memory.data());
  Scratch s{};
  s.use = ++use;
  s.z = a, a += N * 2 * P;
  s.phase = a, a += P;
  s.f = a, a += Np;
  s.norm = a, a += Np;
  s.p = a, a += Np;
  s.work = a, a += Np;
  s.next = a, a += Np;
  s.u = a, a += Np;
  s.shares = a, a += Np;
  s.extra = a, a += padded(extra);
  s.evaluated = reinterpret_cast<int *>(a), a += Np;
  s.flags = reinterpret_cast<uint8_t *>(a);
  return s;
}

// One kernel more than there are, because GraphMKL flags the maps of its other experts too.
template <class Problem>
Scratch working_memory(const Problem &problem) {
  return thread_memory(kernels(problem) + 1, features(problem), scratch(problem));
}

// Arrays that live as long as whoever holds this; copies of it share them.
struct Storage {
  std::vector<std::shared_ptr<std::vector<int>>> lists;
  std::vector<std::shared_ptr<std::vector<double>>> copies;

  // Zeros for n doubles that start on a register and end with a whole one.
  double *zeros(long n) {
    copies.push_back(std::make_shared<std::vector<double>>(static_cast<size_t>(padded(n) + LANES)));
    return aligned(copies.back()->data());
  }

  const double *padded_copy(const double *values, long n) {
    double *a = zeros(n);
    std::copy(values, values + n, a);
    return a;
  }

  const int *list(std::vector<int> values) {
    lists.push_back(std::make_shared<std::vector<int>>(std::move(values)));
    return lists.back()->data();
  }
};

}  // namespace omkl
