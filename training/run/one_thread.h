// Bits that do not depend on --threads.
#pragma once

#include <ATen/Parallel.h>

namespace lcp::training {

/// While it lives, tensors are worked on by one thread: sums of many numbers to one, and least squares, round as they
/// are divided.
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
