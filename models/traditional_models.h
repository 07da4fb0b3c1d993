// The four models behind TraditionalModel, each in a file of its own.
#pragma once

#include <memory>

#include "lcp/nn/traditional_model.h"

namespace lcp::nn {

std::shared_ptr<TraditionalModelImpl> make_friction_model(const TraditionalModelOptions& options);
std::shared_ptr<TraditionalModelImpl> make_network_model(const TraditionalModelOptions& options);
std::shared_ptr<TraditionalModelImpl> make_row_model(const TraditionalModelOptions& options);
std::shared_ptr<TraditionalModelImpl> make_structured_model(const TraditionalModelOptions& options);

/// Sets a parameter to a value, plus normal noise of the standard deviation `noise`.
void assign(const at::Tensor& parameter, const at::Tensor& value, double noise);

/// A float64 tensor [n].
at::Tensor numbers(const std::vector<double>& x);

}  // namespace lcp::nn
