// Hashes by which data and files are recognised.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace lcp::training {

/// The hash FNV-1a, 64 bits, of the bytes.
///   hash: that of the bytes before these.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325u);

/// The hash of the bytes of the tensors, by which a resumed run recognises its data.
std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors);

}  // namespace lcp::training
