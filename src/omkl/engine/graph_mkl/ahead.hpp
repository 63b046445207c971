// Features, phi and P z of rows to come, computed together with those of a row: the factors of all kernels are larger
// than the cache, and are read once for several rows. Results are the same as one row at a time.
#pragma once
#include "graph_mkl/maps.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// After anything but a row that leaves P of a kernel as it is.
static void forget_ahead(const Problem &p, Ahead &a) {
  for (long i = 0; i < p.V.N; ++i) a.count[i] = 0, a.changed[i] = 1;
  for (long j = 0; j < AHEAD; ++j) a.row[j] = -1;
}

// A set scales a row, which is now in w.xs: what has been computed for it stays if it has been scaled alike.
static void begin_row(const Problem &p, const ExpertSet &set, const Workspace &w, Ahead &a) {
  const long j = w.row % AHEAD;
  double *xs = a.xs + j * padded(p.V.d);
  bool same = set.age > 0 && a.row[j] == w.row;
  for (long k = 0; same && k < p.V.d; ++k) same = xs[k] == w.xs[k];
  if (same) return;
  if (set.age == 0 || a.row[j] == w.row) forget_ahead(p, a);
  for (long k = 0; k < p.V.d; ++k) xs[k] = w.xs[k];
  a.row[j] = w.row;
}

// The coming rows, scaled as the present one is.
static void scale_ahead(const Problem &p, const Scaling &scaling, const Workspace &w, Ahead &a) {
  const double root = 1 / sqrt(static_cast<double>(p.V.d));
  for (long next = 1; next < AHEAD; ++next) {
    const long row = w.row + next, j = row % AHEAD;
    if (a.row[j] == row) continue;
    const double *x = w.coming + next * (p.V.d + p.S);
    for (long k = 0; k < p.V.d; ++k)
      a.xs[j * padded(p.V.d) + k] = scaled_input(scaling, k, clipped(x[k], LARGEST_VALUE), root, CLIP);
    a.row[j] = row;
  }
}

// z, phi and P z of the least squares on a kernel for the present row, where they are worth computing for several.
static bool take_ahead(const Problem &p, const Scaling &scaling, const Expert &x, const Workspace &w,
                       Evaluations &out) {
  Ahead &a = out.ahead;
  if (!w.coming || x.i >= p.V.N) return false;
  const long size = AHEAD * x.stride, i = x.i;
  double *z = a.z + i * size, *phi = a.phi + i * size, *Pz = a.Pz + i * size;
  if (!(a.first[i] <= w.row && w.row < a.first[i] + a.count[i])) {
    const bool changed = a.changed[i];
    a.changed[i] = 0, a.count[i] = 0;
    if (changed || w.left < AHEAD) return false;
    scale_ahead(p, scaling, w, a);
    for (long next = 0; next < AHEAD; ++next)
      kernel_features(p, i, a.xs + (w.row + next) % AHEAD * padded(p.V.d), w.wave, z + next * x.stride);
    factor_times_many<AHEAD>(x.R, x.n, x.stride, z, phi);
    all_columns_many<AHEAD>(x.R, x.n, x.stride, phi, Pz);
    a.first[i] = w.row, a.count[i] = AHEAD;
  }
  const long from = (w.row - a.first[i]) * x.stride, to = i * w.widest;
  for (long j = 0; j < x.stride; j += W) {
    store(out.z + to + j, load(z + from + j));
    store(out.phi + to + j, load(phi + from + j));
    store(out.Pz + to + j, load(Pz + from + j));
  }
  return true;
}

}  // namespace omkl::graph_mkl::OMKL_ISA
