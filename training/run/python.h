// The Python that programs run for what only Python can do: figures, and models in the form of torch.export.
#pragma once

#include <filesystem>
#include <string>

namespace lcp::training {

/// The interpreter that the environment variable TORCHLCP_PYTHON names, else that which the build was configured with,
/// else python3 of PATH. Where the variable is set but empty, so is the result: nothing is run, and nothing said.
std::string python_interpreter();

/// share/torchlcp/`name`, a script that is built and installed beside the programs.
std::filesystem::path python_script(const std::string& name);

}  // namespace lcp::training
