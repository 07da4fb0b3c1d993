#include "run/model_file.h"

#include <dlfcn.h>
#include <torch/version.h>

#include <iostream>

#include "lcp/pad.h"
#include "run/files.h"
#include "run/process.h"
#include "run/process_group.h"
#include "run/python.h"
#include "run/text.h"

namespace lcp::training {
namespace {

constexpr const char* kTorchScript = "model.pt";
constexpr const char* kProgram = "model.pt2";

// The libtorchlcp.so that this program has loaded.
std::string operator_library() {
  Dl_info found{};
  dladdr(reinterpret_cast<void*>(&lcp::unpad), &found);
  return found.dli_fname;
}

}  // namespace

void write_model(OutputFolder& out, const std::string& torchscript) {
  out.write(kTorchScript, torchscript);
  const std::string interpreter = python_interpreter();
  if (interpreter.empty() || !ProcessGroup::current().is_first()) return;
  const std::string model = (out / kTorchScript).string(), script = python_script("export.py").string();
  const UnfinishedFolder folder(out.path());
  const auto program = folder.path() / kProgram;
  const ProcessResult exported =
      run_process({interpreter, script, "--library", operator_library(), model, program.string()});
  if (exported.status == 0 && std::filesystem::exists(program)) {
    out.write(kProgram, read_file(program));
  } else if (!out.quiet()) {
    const bool runs = exported.status >= 0;
    const std::string reason = exported.last_error();
    std::cerr << "no " << kProgram << ": "
              << (!runs            ? "cannot run " + interpreter
                  : reason.empty() ? interpreter + " wrote none"
                                   : reason)
              << "; to write it by a Python with torch " << TORCH_VERSION << ": "
              << shell_command({"python3", script, "--library", operator_library(), model,
                                (out.path() / "").parent_path().string() + ".pt2"})
              << std::endl;
  }
}

}  // namespace lcp::training
