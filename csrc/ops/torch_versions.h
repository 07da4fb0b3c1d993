// Differences between the versions of PyTorch that TorchLCP is built with, 2.11 to 2.15.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace lcp::ops {

/// Whether the engine holds a Node by an intrusive pointer, as it does since PyTorch 2.13.
template <class Node>
inline constexpr bool kIsIntrusive = std::is_base_of_v<c10::intrusive_ptr_target, Node>;

/// The pointer by which the engine holds a Node.
template <class Node>
using NodePointer = std::conditional_t<kIsIntrusive<Node>, c10::intrusive_ptr<Node>, std::shared_ptr<Node>>;

/// A new Node. A shared pointer needs PyTorch's own deleter, which releases long graphs without recursion.
template <class Node, class... Arguments>
NodePointer<Node> new_node(Arguments&&... arguments) {
  auto node = std::make_unique<Node>(std::forward<Arguments>(arguments)...);
  if constexpr (kIsIntrusive<Node>) {
    return NodePointer<Node>(std::move(node));
  } else {
    return NodePointer<Node>(node.release(), [](auto* owned) { deleteNode(owned); });
  }
}

}  // namespace lcp::ops
