// Errors of callers.
#pragma once

#include <string>

#include "lcp/learning/network_search.h"

namespace lcp::learning::fitting {

/// Samples in float64 on the CPU, without a gradient. Throws c10::Error unless x is [samples, p] and y [samples, d],
/// of finite numbers. The names are those of the caller's arguments.
Samples checked_samples(const at::Tensor& x, const at::Tensor& y, const std::string& x_name, const std::string& y_name);

/// Throws c10::Error where an option is out of its range, or does not fit another one or the samples.
void check_options(const NetworkSearchOptions& options, const Samples& samples);

}  // namespace lcp::learning::fitting
