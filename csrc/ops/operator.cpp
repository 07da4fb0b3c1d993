#include "ops/operator.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <sstream>
#include <vector>

namespace lcp::ops {
namespace {

// Sizes as error messages write them: "[..., 3 c, n]".
std::string text_of(const Sizes& sizes) {
  std::string text = "[...";
  for (int k = 0; k < sizes.count; ++k) {
    const auto [factor, letter] = sizes.size[k];
    text += ", ";
    if (factor != 1 || letter == 0) text += std::to_string(factor);
    if (factor != 1 && letter != 0) text += ' ';
    if (letter != 0) text += letter;
  }
  return text + "]";
}

}  // namespace

std::string Operator::schema() const {
  const auto listed = [](const auto& items, const auto& text) {
    std::string list;
    for (const auto& item : items) list.append(list.empty() ? "" : ", ").append(text(item));
    return list;
  };
  const auto* const first_keyword = std::find_if(arguments().begin(), arguments().end(), [](const Argument& argument) {
    return argument.declaration.find('=') != std::string_view::npos && !argument.is_positional;
  });
  const std::string takes = listed(arguments(), [first_keyword](const Argument& argument) {
    return std::string(&argument == first_keyword ? "*, " : "").append(argument.declaration);
  });
  std::string schema(name_);
  schema.append("(").append(takes).append(") -> ");
  if (returns_list()) return schema.append("Tensor[]");
  const std::string returns = listed(results(), [](const Result& r) { return "Tensor " + std::string(r.name); });
  if (result_count_ == 1) return schema.append("Tensor");
  return schema.append("(").append(returns).append(")");
}

void check_layout(std::string_view name, const Tensor& x) {
  TORCH_CHECK(x.layout() == at::kStrided, name, " must be a dense tensor; got layout ", x.layout());
}

void check_finite(std::string_view name, const Value& value) {
  const double* const x = std::get_if<double>(&value);
  TORCH_CHECK(x == nullptr || std::isfinite(*x), name, " must be finite; got ", *x);
}

void check_positive(std::string_view name, const Value& value) {
  const double* const x = std::get_if<double>(&value);
  TORCH_CHECK(x == nullptr || (*x > 0 && std::isfinite(*x)), name, " must be finite and > 0; got ", *x);
}

void check_nonnegative(std::string_view name, const Value& value) {
  const double* const x = std::get_if<double>(&value);
  TORCH_CHECK(x == nullptr || (*x >= 0 && std::isfinite(*x)), name, " must be finite and >= 0; got ", *x);
}

void check_count(std::string_view name, const Value& value) {
  const std::int64_t* const x = std::get_if<std::int64_t>(&value);
  TORCH_CHECK(x == nullptr || *x >= 0, name, " must be >= 0; got ", *x);
}

Call::Call(const Operator& op, c10::ArrayRef<Value> values) : op_(op), values_(values) {
  list_tensors();
  for (const Given& x : tensors_) check_layout(x.argument->name, *x.tensor);
  for (const Given& x : tensors_) check_sizes(*x.argument, *x.tensor);
  for (const Given& x : tensors_) {
    check_dtype(*x.argument, *x.tensor);
    broadcast(*x.argument, *x.tensor);
  }
  for (std::size_t k = 0; k < values_.size(); ++k) {
    const Argument& argument = op.arguments()[k];
    const bool is_size = argument.kind == Argument::Kind::kFlag && argument.sizes.count > 0;
    if (is_size) known_.push_back({argument.sizes.size[0].letter, argument.name, std::get<std::int64_t>(values_[k])});
    if (argument.check != nullptr) argument.check(argument.name, values_[k]);
  }
  if (op.check() != nullptr) op.check()(*this);
}

std::string_view Call::text() const {
  const auto* const text = std::get_if<std::string_view>(&values_.front());
  return text == nullptr ? std::string_view() : *text;
}

void Call::list_tensors() {
  const auto arguments = op_.arguments();
  for (const int k : op_.tensors()) {
    const auto* const x = std::get_if<const Tensor*>(&values_[k]);
    if (x == nullptr) continue;
    tensors_.push_back({&arguments[k], *x});
    if (k == 0) first_ = tensors_.back();
  }
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k].kind != Argument::Kind::kTensors) continue;
    const c10::ArrayRef<Argument> parts = arguments[k].parts(text());
    const auto list = std::get<at::TensorList>(values_[k]);
    TORCH_CHECK(list.size() == parts.size(), arguments[k].name, " must have ", parts.size(), " tensors; got ",
                list.size());
    for (std::size_t i = 0; i < parts.size(); ++i) tensors_.push_back({&parts[i], &list[i]});
    if (first_.tensor == nullptr) first_ = tensors_.front();
  }
}

const Call::Known* Call::find(char letter) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.letter == letter; });
  return found == known_.end() ? nullptr : &*found;
}

// Throws where x does not have the sizes of the argument; learns sizes that are not known yet from x.
void Call::check_sizes(const Argument& argument, const Tensor& x) {
  const Sizes& sizes = argument.sizes;
  bool fits = x.dim() >= sizes.count;
  for (int k = 0; fits && k < sizes.count; ++k) {
    const auto [factor, letter] = sizes.size[k];
    const c10::SymInt& size = x.sym_sizes()[x.dim() - sizes.count + k];
    if (letter == 0) {
      fits = size == factor;
      continue;
    }
    const Known* known = find(letter);
    if (known == nullptr) {
      known_.push_back({letter, argument.name, factor == 1 ? size : size / factor});
      known = &known_.back();
    }
    fits = size == (factor == 1 ? known->size : known->size * factor);
  }
  if (fits) return;
  std::ostringstream known;  // the sizes that were read from other arguments
  for (const Known& size : known_) {
    const bool is_named = std::any_of(sizes.size.begin(), sizes.size.begin() + sizes.count,
                                      [&](const Size& s) { return s.letter == size.letter; });
    if (!is_named || size.from == argument.name) continue;
    known << (known.view().empty() ? " with " : " and ") << size.from << "'s " << size.letter << " = " << size.size;
  }
  TORCH_CHECK(false, argument.name, " must be ", text_of(sizes), known.str(), "; got ", x.sym_sizes());
}

void Call::check_dtype(const Argument& argument, const Tensor& x) const {
  const std::string_view name = argument.name;
  const std::string_view first_name = first_.argument->name;
  if (&x == &first()) {
    TORCH_CHECK(x.scalar_type() == at::kDouble || x.scalar_type() == at::kFloat, name,
                " must be float32 or float64; got ", x.scalar_type());
  } else if (argument.dtype == at::kFloat) {
    TORCH_CHECK(x.scalar_type() == first().scalar_type(), name, " must have ", first_name, "'s dtype, ",
                first().scalar_type(), "; got ", x.scalar_type());
  } else {
    TORCH_CHECK(x.scalar_type() == argument.dtype, name, " must be ", argument.dtype, "; got ", x.scalar_type());
  }
  TORCH_CHECK(x.device() == first().device(), name, " must be on ", first_name, "'s device, ", first().device(),
              "; got ", x.device());
}

void Call::broadcast(const Argument& argument, const Tensor& x) {
  const auto batch = x.sym_sizes().slice(0, x.dim() - argument.sizes.count);
  try {
    batch_ = at::infer_size_symdimvector(batch_, batch);
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "the batch dimensions of ", first_.argument->name, " ", first().sym_sizes(), " and ",
                argument.name, " ", x.sym_sizes(), " must broadcast; got ", batch_, " and ", batch);
  }
}

const c10::SymInt& Call::size(char letter) const { return find(letter)->size; }

const Value& Call::value(std::string_view name) const {
  const auto arguments = op_.arguments();
  const auto found =
      std::find_if(arguments.begin(), arguments.end(), [&](const Argument& a) { return a.name == name; });
  return values_[found - arguments.begin()];
}

c10::SymDimVector Call::shape(const Sizes& sizes) const {
  c10::SymDimVector shape = batch_;
  for (int k = 0; k < sizes.count; ++k) {
    const auto [factor, letter] = sizes.size[k];
    shape.push_back(letter == 0 ? c10::SymInt(factor) : size(letter) * factor);
  }
  return shape;
}

c10::SymDimVector Call::shape(const Result& result) const {
  if (!op_.shape_of_result()) return shape(result.sizes);
  const auto given = std::get<c10::SymIntArrayRef>(values_[*op_.shape_of_result()]);
  return c10::SymDimVector(given.begin(), given.end());
}

at::TensorOptions Call::options(const Result& result) const {
  return result.dtype == at::kFloat ? first().options() : first().options().dtype(result.dtype);
}

Tensor Call::empty(const Result& result) const {
  c10::SymDimVector sizes = shape(result);
  if (!result.steps_first || batch_.empty()) return at::empty_symint(sizes, options(result));
  const auto steps = static_cast<std::int64_t>(batch_.size());
  std::rotate(sizes.begin(), sizes.begin() + steps, sizes.begin() + steps + 1);
  return at::empty_symint(sizes, options(result)).movedim(0, steps);
}

void with_boxed_call(const Operator& op, c10::ArrayRef<c10::IValue> arguments,
                     const std::function<void(const Call&)>& use) {
  std::deque<std::vector<c10::SymInt>> shapes;  // the memory of values of type SymInt[]
  std::deque<std::vector<Tensor>> lists;        // the memory of values of type Tensor[]
  std::vector<Value> values;
  for (const c10::IValue& argument : arguments) {
    if (argument.isNone()) {
      values.emplace_back();
    } else if (argument.isTensor()) {
      values.emplace_back(&argument.toTensor());
    } else if (argument.isBool()) {
      values.emplace_back(argument.toBool());
    } else if (argument.isInt()) {
      values.emplace_back(argument.toInt());
    } else if (argument.isDouble()) {
      values.emplace_back(argument.toDouble());
    } else if (argument.isString()) {
      values.emplace_back(argument.toStringView());
    } else if (argument.isTensorList()) {
      values.emplace_back(at::TensorList(lists.emplace_back(argument.toTensorVector())));
    } else {
      values.emplace_back(c10::SymIntArrayRef(shapes.emplace_back(argument.toSymIntVector())));
    }
  }
  use(Call(op, values));
}

}  // namespace lcp::ops
