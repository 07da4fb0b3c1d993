// All operators of the library.
#pragma once

#include <c10/util/ArrayRef.h>

#include <string_view>

#include "ops/operator.h"

namespace lcp::ops {

c10::ArrayRef<const Operator*> operators();

/// name: with or without the namespace "lcp::".
const Operator& find_operator(std::string_view name);

}  // namespace lcp::ops
