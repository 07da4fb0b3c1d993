#include "models/torchscript.h"

#include <fcntl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
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

std::string bytes_of(const jit::Module& module) {
  std::ostringstream stream;  // since PyTorch ends the process where it cannot write to a file
  module.save(stream);
  return stream.str();
}

void write_bytes(const std::string& bytes, const std::string& path) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string unfinished = path + "." + std::to_string(getpid()) + "." + std::to_string(now) + ".tmp";
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  bool written = file >= 0;
  for (std::size_t done = 0; written && done < bytes.size();) {
    const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    written = count >= 0;
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  written = written && fsync(file) == 0 && rename(unfinished.c_str(), path.c_str()) == 0;
  const int reason = errno;
  if (file >= 0) close(file);
  if (written) return;
  unlink(unfinished.c_str());
  throw std::system_error(reason, std::generic_category(), "cannot write " + path);
}

}  // namespace lcp::nn
