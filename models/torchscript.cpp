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

constexpr std::int64_t kFormatVersion = 1;  // of the attributes, parameters and methods that a file has

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

jit::Module make_module(const std::string& name, const std::vector<std::pair<std::string, double>>& numbers) {
  jit::Module module(name);
  module.register_attribute("format_version", c10::IntType::get(), kFormatVersion);
  for (const auto& [attribute, value] : numbers) module.register_attribute(attribute, c10::FloatType::get(), value);
  return module;
}

void define(jit::Module& module, const std::string& source) { module.define(source, std::make_shared<Resolver>()); }

std::string add_state_map(jit::Module& module, const std::string& name, const StateMap& map) {
  const auto add = [&](const std::string& suffix, const torch::Tensor& value) -> std::string {
    if (!value.defined()) return "None";
    module.register_parameter(name + suffix, value.detach().clone().requires_grad_(), false);
    return "self." + name + suffix;
  };
  const auto linear = [](const std::string& x, const std::string& weight, const std::string& bias) {
    return "torch.linear(" + x + ", " + weight + ", " + bias + ")";
  };
  std::string expression = linear("s", add("_weight", map->affine->weight), add("_bias", map->affine->bias));
  if (map->options.hidden() > 0) {
    const std::string hidden =
        "torch.tanh(" +
        linear("s", add("_hidden_weight", map->hidden_in->weight), add("_hidden_bias", map->hidden_in->bias)) + ")";
    expression += " + " + linear(hidden, add("_out_weight", map->hidden_out->weight), "None");
  }
  return expression;
}

void save_module(const jit::Module& module, const std::string& path) {
  const std::string temporary = path + ".tmp";
  module.save(temporary);
  const int file = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || fsync(file) != 0) throw std::system_error(errno, std::generic_category(), "cannot write " + path);
  close(file);
  std::filesystem::rename(temporary, path);
}

}  // namespace lcp::nn
