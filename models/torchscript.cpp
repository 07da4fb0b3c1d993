#include "models/torchscript.h"

#include <fcntl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

namespace lcp::nn {
namespace {

namespace jit = torch::jit;

// torch.ops: each attribute is a namespace of operators.
struct OperatorNamespaces : jit::SugaredValue {
  std::string kind() const override { return "torch.ops"; }
  std::shared_ptr<jit::SugaredValue> attr(const jit::SourceRange&, jit::GraphFunction&,
                                          const std::string& name) override {
    return std::make_shared<jit::BuiltinModule>(name);
  }
};

// torch: the ATen functions, and torch.ops, which the default module does not know.
struct TorchNamespace : jit::BuiltinModule {
  TorchNamespace() : BuiltinModule("aten") {}
  std::shared_ptr<jit::SugaredValue> attr(const jit::SourceRange& range, jit::GraphFunction& function,
                                          const std::string& member) override {
    if (member == "ops") return std::make_shared<OperatorNamespaces>();
    return BuiltinModule::attr(range, function, member);
  }
};

struct Resolver : jit::Resolver {
  std::shared_ptr<jit::SugaredValue> resolveValue(const std::string& name, jit::GraphFunction&,
                                                  const jit::SourceRange&) override {
    return name == "torch" ? std::make_shared<TorchNamespace>() : nullptr;
  }
};

}  // namespace

void define(jit::Module& module, const std::string& source) { module.define(source, std::make_shared<Resolver>()); }

void save_module(const jit::Module& module, const std::string& path) {
  const std::string temporary = path + ".tmp";
  module.save(temporary);
  const int file = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || fsync(file) != 0) throw std::system_error(errno, std::generic_category(), "cannot write " + path);
  close(file);
  std::filesystem::rename(temporary, path);
}

}  // namespace lcp::nn
