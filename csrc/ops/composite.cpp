#include "ops/composite.h"

#include <ATen/functorch/TensorWrapper.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

namespace lcp::ops {

at::Tensor without_wrappers(at::Tensor x) {
  while (const auto* const wrapper = at::functorch::maybeGetTensorWrapper(x)) x = wrapper->value();
  return x;
}

namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return parts;
}

}  // namespace

SchemaWriter::SchemaWriter(std::string_view text) {
  const std::size_t open = text.find('('), close = text.find(')'), arrow = text.find("-> ");
  name_ = text.substr(0, open);
  names_ = split(text.substr(open + 1, close - open - 1));
  if (arrow != std::string_view::npos) result_names_ = text.substr(arrow + 3);
}

std::vector<std::string> SchemaWriter::member_names(const std::string& name, std::string_view names) {
  if (name.starts_with('(')) return split(std::string_view(name).substr(1, name.size() - 2));
  std::vector<std::string> all = split(names);
  if (name.starts_with('_')) {
    for (std::string& each : all) each += name;
  }
  return all;
}

std::string SchemaWriter::declaration(const std::string& type, const std::string& name) {
  const std::size_t optional = name.find('?');
  return optional == std::string::npos ? c10::str(type, " ", name)
                                       : c10::str(type, "? ", name.substr(0, optional), name.substr(optional + 1));
}

std::string SchemaWriter::in_parentheses(const std::vector<std::string>& parts) {
  return c10::str("(", c10::Join(", ", parts), ")");
}

void SchemaWriter::take_star() {
  if (next_ == names_.size() || names_[next_] != "*") return;
  arguments_.push_back(names_[next_++]);
  arguments_.insert(arguments_.end(), numbers_.begin(), numbers_.end());
}

std::string SchemaWriter::next_name() {
  take_star();
  return names_.at(next_++);
}

std::string SchemaWriter::schema(const std::string& result) {
  take_star();
  TORCH_INTERNAL_ASSERT(next_ == names_.size(), name_, " has more names than arguments");
  return c10::str(name_, in_parentheses(arguments_), " -> ", result);
}

ArgumentReader::ArgumentReader(const c10::FunctionSchema& schema, const torch::jit::Stack& stack)
    : schema_(schema), values_(torch::jit::last(stack, schema.arguments().size())) {
  const auto& all = schema.arguments();
  first_keyword_ = std::find_if(all.begin(), all.end(), [](const auto& x) { return x.kwarg_only(); }) - all.begin();
}

}  // namespace lcp::ops
