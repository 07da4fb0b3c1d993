// A guard for computations whose results must not depend on the number of threads.
#pragma once

#include <ATen/Parallel.h>

namespace lcp::detail {

/// While a OneThread exists, tensor operations use one thread. Reductions and least squares divide their sums among the
/// threads, so that their rounding would depend on the number of threads.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

}  // namespace lcp::detail
