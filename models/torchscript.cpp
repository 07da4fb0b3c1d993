#include "lcp/nn/torchscript.h"

#include <fcntl.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/script.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <system_error>

namespace lcp::nn {
namespace {

namespace jit = torch::jit;

// Counts the changes of the attributes, parameters and methods that a file has.
constexpr std::int64_t kFormatVersion = 2;

// The name of a tensor in a file: f_weight for f.affine.weight, f_hidden_weight for f.hidden_in.weight.
std::string name_in_file(std::string name) {
  const std::pair<std::string, std::string> replacements[] = {
      {"affine.", ""}, {"matrix.", ""}, {"hidden_in.", "hidden_"}, {"hidden_out.", "out_"}, {".", "_"}};
  for (const auto& [part, replacement] : replacements) {
    const std::size_t place = name.find(part);
    if (place != std::string::npos) name.replace(place, part.size(), replacement);
  }
  return name;
}

void add_step(jit::Module& script, const ModelInputs& inputs, const StepFunction& step) {
  const torch::NoGradGuard no_grad;
  const auto traced = [&](const jit::Stack& stack) -> jit::Stack {
    std::vector<at::Tensor> tensors;
    for (const auto& value : stack) tensors.push_back(value.toTensor());
    const auto [v_next, force, status] = step(tensors);
    return {c10::ivalue::Tuple::create(v_next, force, status)};
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  jit::Stack examples;
  std::vector<std::string> names;
  for (const auto& [input, example] : inputs) {
    names.push_back(input);
    examples.emplace_back(example);
  }
  const auto state =
      jit::tracer::trace(examples, traced, no_name, /*strict=*/true, /*force_outplace=*/false, &script, names).first;
  const c10::QualifiedName method(*script.type()->name(), "step");
  script.type()->addMethod(script._ivalue()->compilation_unit()->create_function(method, state->graph));
}

}  // namespace

ModelInputs velocity_and_force() { return {{"v", at::zeros({1})}, {"u", at::zeros({1})}}; }

void register_input_sizes(jit::Module& script, const ModelInputs& inputs) {
  c10::Dict<std::string, std::vector<std::int64_t>> sizes;
  for (const auto& [input, example] : inputs) sizes.insert(input, example.sizes().slice(1).vec());
  const auto type = c10::DictType::create(c10::StringType::get(), c10::ListType::ofInts());
  script.register_attribute("input_sizes", type, sizes);
}

std::string torchscript_of(const std::string& name, const torch::nn::Module& model, const NamedNumbers& numbers,
                           const ModelInputs& inputs, const StepFunction& step) {
  jit::Module script(name);
  script.register_attribute("format_version", c10::IntType::get(), kFormatVersion);
  for (const auto& [attribute, value] : numbers) script.register_attribute(attribute, c10::FloatType::get(), value);
  for (const auto& item : model.named_parameters()) {
    script.register_parameter(name_in_file(item.key()), item.value(), /*is_buffer=*/false);
  }
  for (const auto& item : model.named_buffers()) script.register_buffer(name_in_file(item.key()), item.value());
  register_input_sizes(script, inputs);
  add_step(script, inputs, step);
  std::string parameters, arguments;
  for (const auto& input : inputs) {
    parameters += ", " + input.first + ": Tensor";
    arguments += (arguments.empty() ? "" : ", ") + input.first;
  }
  script.define("def forward(self" + parameters + ") -> Tensor:\n    return self.step(" + arguments + ")[0]\n");
  std::ostringstream stream;  // since PyTorch ends the process where it cannot write to a file
  script.save(stream);
  return stream.str();
}

void read_parameters(const std::string& name, torch::nn::Module& model, const NamedNumbers& numbers,
                     const std::string& path) {
  const torch::NoGradGuard no_grad;
  jit::Module script;
  try {
    script = jit::load(path);
  } catch (const c10::Error&) {
    TORCH_CHECK(false, path, ": is no TorchScript file");
  }
  TORCH_CHECK(script.type()->name()->name() == name, path, ": is of a ", script.type()->name()->name(), ", not of a ",
              name);
  for (const auto& [attribute, value] : numbers) {
    TORCH_CHECK(script.hasattr(attribute), path, ": has no attribute ", attribute);
    const double found = script.attr(attribute).toDouble();
    TORCH_CHECK(found == value, path, ": has ", attribute, " = ", found, ", not ", value);
  }
  std::map<std::string, at::Tensor> found;
  for (const auto& item : script.named_parameters()) found[item.name] = item.value;
  const auto parameters = model.named_parameters();
  for (const auto& item : parameters) {
    const auto one = found.find(name_in_file(item.key()));
    TORCH_CHECK(one != found.end() && one->second.sizes() == item.value().sizes(), path, ": has no parameter ",
                name_in_file(item.key()), " ", item.value().sizes());
  }
  TORCH_CHECK(found.size() == parameters.size(), path, ": has ", found.size(), " parameters, not ", parameters.size());
  for (const auto& item : parameters) item.value().copy_(found.at(name_in_file(item.key())));
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
