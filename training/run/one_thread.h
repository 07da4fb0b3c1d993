// Results whose bits do not depend on --threads.
#pragma once

#include <ATen/Parallel.h>

namespace lcp::training {

/// While it lives, tensor operations use one thread. Reductions of a tensor and least squares round differently for
/// each number of threads, since that divides their sums into other parts.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

}  // namespace lcp::training
