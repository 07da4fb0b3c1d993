// The files of a learned model.
#pragma once

#include <string>

#include "run/output_folder.h"

namespace lcp::training {

/// Writes a model as model.pt and, where there is a Python with the torch of this build, as model.pt2: the same as a
/// program of torch.export, made of model.pt by python/torchlcp/export.py. Where that fails, there is no model.pt2, and
/// a line on stderr says how to make it later; where python_interpreter() is empty, there is no such line either.
///   torchscript: the content of model.pt.
/// Throws a UsageError where a file cannot be written.
void write_model(OutputFolder& out, const std::string& torchscript);

}  // namespace lcp::training
