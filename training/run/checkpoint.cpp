#include "run/checkpoint.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "run/error.h"
#include "run/files.h"

namespace lcp::training {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr const char* kState = "state";
constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kZipArchive = "PK\x03\x04";  // the first bytes of a file that PyTorch writes

struct TypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr std::array<TypeName, 4> kTypes = {
    {{torch::kFloat, "F32"}, {torch::kDouble, "F64"}, {torch::kLong, "I64"}, {torch::kBool, "BOOL"}}};

struct Malformed {};

void require(bool condition) {
  if (!condition) throw Malformed();
}

const char* name_of(torch::ScalarType type) {
  for (const TypeName& known : kTypes) {
    if (known.type == type) return known.name;
  }
  throw std::logic_error("a checkpoint cannot hold tensors of this type");
}

torch::ScalarType type_of(const json& name) {
  for (const TypeName& known : kTypes) {
    if (name == known.name) return known.type;
  }
  throw Malformed();
}

std::uint64_t number(const json& x) {
  require(x.is_number_unsigned());
  return x.get<std::uint64_t>();
}

torch::Tensor read_tensor(const json& entry, std::string_view bytes) {
  const torch::ScalarType type = type_of(entry.at("dtype"));
  std::vector<std::int64_t> shape;
  std::uint64_t size = c10::elementSize(type);
  for (const json& dimension : entry.at("shape")) {
    const std::uint64_t length = number(dimension);
    require(length <= bytes.size() && (length == 0 || size <= bytes.size() / length));
    size *= length;
    shape.push_back(static_cast<std::int64_t>(length));
  }
  const json& offsets = entry.at("data_offsets");
  require(offsets.is_array() && offsets.size() == 2);
  const std::uint64_t begin = number(offsets[0]), end = number(offsets[1]);
  require(begin <= end && end <= bytes.size() && end - begin == size);
  if (type == torch::kBool) {  // reading any byte but 0 and 1 as a bool is undefined
    for (const char byte : bytes.substr(begin, size)) require(byte == 0 || byte == 1);
  }
  torch::Tensor tensor = torch::empty(shape, type);
  if (size > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.data() + begin, size);
  return tensor;
}

Checkpoint parse(std::string_view file) {
  require(file.size() >= kLengthBytes);
  std::uint64_t length = 0;
  for (std::size_t k = 0; k < kLengthBytes; ++k) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(file[k])) << (8 * k);
  }
  require(length <= file.size() - kLengthBytes);
  const json header = json::parse(file.substr(kLengthBytes, length));
  const std::string_view bytes = file.substr(kLengthBytes + length);
  Checkpoint checkpoint;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      checkpoint.state = json::parse(entry.at(kState).get<std::string>());
    } else {
      checkpoint.tensors[name] = read_tensor(entry, bytes);
    }
  }
  require(checkpoint.state.is_object());
  return checkpoint;
}

}  // namespace

std::string Checkpoint::encode() const {
  json header = {{kMetadata, {{kState, state.dump()}}}};
  std::string bytes;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor data = tensor.detach().contiguous();
    header[name] = {{"dtype", name_of(data.scalar_type())},
                    {"shape", data.sizes().vec()},
                    {"data_offsets", {bytes.size(), bytes.size() + data.nbytes()}}};
    bytes.append(static_cast<const char*>(data.const_data_ptr()), data.nbytes());
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // so that tensors are aligned
  std::string length(kLengthBytes, '\0');
  for (std::size_t k = 0; k < kLengthBytes; ++k) length[k] = static_cast<char>(text.size() >> (8 * k) & 0xff);
  return length + text + bytes;
}

Checkpoint Checkpoint::decode(const std::string& bytes, const std::filesystem::path& path) {
  if (bytes.starts_with(kZipArchive)) {
    throw UsageError(path.string() +
                     ": is a TorchScript archive, as earlier versions wrote checkpoints; it is not read, since reading "
                     "one runs its code; train anew without --resume");
  }
  try {
    return parse(bytes);
  } catch (const Malformed&) {
  } catch (const json::exception&) {
  }
  refuse_checkpoint(path);
}

Checkpoint Checkpoint::read(const std::filesystem::path& path) { return decode(read_file(path), path); }

void Checkpoint::require_data(std::int64_t fingerprint, const std::filesystem::path& path) const {
  if (state.value("data", json()) == fingerprint) return;
  throw UsageError(path.string() + ": was made with other data than these flags give now");
}

void refuse_checkpoint(const std::filesystem::path& path) {
  throw UsageError(path.string() + ": is no checkpoint of this program");
}

std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors) {
  std::uint64_t hash = hash_of("");
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor data = tensor.contiguous();
    hash = hash_of({static_cast<const char*>(data.const_data_ptr()), data.nbytes()}, hash);
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace lcp::training
