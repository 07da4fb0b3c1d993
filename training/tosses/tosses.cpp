#include "tosses/tosses.h"

#include <ATen/Context.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kColumns = std::size(kTossColumns);
constexpr std::int64_t kFewest = 3;  // samples of a toss
constexpr double kLongest = 1.1;     // quaternion; the shortest is its inverse

// torch.save of PyTorch before 1.6 writes one pickle behind another, of which this begins the one of a tensor, and then
// the numbers of the tensor's storage behind their count. Later ones write a zip archive.
constexpr std::string_view kTensorPickle(
    "\x80\x02"
    "ctorch._utils\n_rebuild_tensor_v2\n",
    35);

Tensor read_early_tensor(const std::string& bytes) {
  std::size_t pickle = bytes.find(kTensorPickle);
  TORCH_CHECK(pickle != std::string::npos, "the file has no tensor");
  const auto read = [&](char* to, std::size_t size) {
    size = std::min(size, bytes.size() - pickle);
    std::memcpy(to, bytes.data() + pickle, size);
    pickle += size;
    return size;
  };
  void* storage = nullptr;
  const auto allocate = [&](const std::string&) {
    at::DataPtr memory = at::getCPUAllocator()->allocate(bytes.size());
    storage = memory.get();
    return memory;
  };
  torch::jit::Unpickler unpickler(read, nullptr, nullptr, allocate, at::kCPU);
  Tensor x = unpickler.parse_ivalue().toTensor();
  const std::size_t size = x.storage().nbytes();
  std::int64_t count = -1;
  TORCH_CHECK(size + sizeof(count) <= bytes.size(), "the file is too short");
  const char* numbers = bytes.data() + bytes.size() - size;
  std::memcpy(&count, numbers - sizeof(count), sizeof(count));
  TORCH_CHECK(static_cast<std::size_t>(count) * x.element_size() == size, "the file is too short or too long");
  std::memcpy(storage, numbers, size);
  return x.clone();  // without the rest of the memory
}

// [T, kColumns or more].
Tensor read_tensor(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  Tensor x;
  try {
    x = bytes.starts_with("PK") ? torch::jit::pickle_load({bytes.begin(), bytes.end()}).toTensor()
                                : read_early_tensor(bytes);
  } catch (const std::exception&) {
    throw UsageError(path.string() + ": no tensor that torch.save wrote");
  }
  if (x.dim() == 3 && x.size(0) == 1) x = x[0];
  if (x.dim() != 2 || x.size(1) < kColumns || !x.is_floating_point()) {
    throw UsageError(path.string() + ": must hold a tensor [samples, " + std::to_string(kColumns) +
                     " or more] of floating-point numbers; got " + c10::str(x.scalar_type(), " ", x.sizes()));
  }
  return x.slice(1, 0, kColumns).to(torch::kDouble);
}

Tensor read_table(const std::filesystem::path& path) {
  const Table table = read_csv(path, {std::begin(kTossColumns), std::end(kTossColumns)});
  std::vector<Tensor> columns;
  columns.reserve(kColumns);
  for (const char* name : kTossColumns) columns.push_back(torch::tensor(table[name], torch::kDouble));
  return at::stack(columns, 1);
}

Toss read_toss(const std::filesystem::path& path, double length) {
  const bool is_tensor = path.extension() == ".pt";
  const Tensor x = is_tensor ? read_tensor(path) : read_table(path);
  if (length == 0) length = is_tensor ? kHalfWidth : 1;
  const auto refuse = [&](std::int64_t row, const std::string& what) {
    const std::string place = is_tensor ? "row " + std::to_string(row + 1) : "line " + std::to_string(row + 2);
    throw UsageError(path.string() + ": " + place + ": " + what);
  };
  if (x.size(0) < kFewest) {
    throw UsageError(path.string() + ": has " + std::to_string(x.size(0)) + " samples; a toss has at least " +
                     std::to_string(kFewest));
  }
  const Tensor bad = x.isfinite().logical_not().nonzero();
  if (bad.size(0) > 0) {
    refuse(bad[0][0].item<std::int64_t>(),
           std::string(kTossColumns[bad[0][1].item<std::int64_t>()]) + " is not finite");
  }
  const Tensor quaternion = x.slice(1, 3, 7), size = quaternion.norm(2, {1});
  const Tensor odd = ((size > kLongest) | (size < 1 / kLongest)).nonzero();
  if (odd.size(0) > 0) {
    const auto row = odd[0][0].item<std::int64_t>();
    refuse(row, "the quaternion must have the length 1; got " + short_number(size[row].item<double>()));
  }
  return {path.filename().string(), length * x.slice(1, 0, 3), quaternion / size.unsqueeze(1),
          length * x.slice(1, 7, 10), x.slice(1, 10, kColumns).contiguous()};
}

// Whether a comes before b, where runs of digits are compared as numbers.
bool in_order(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      unsigned long long m = 0, n = 0;
      i = static_cast<std::size_t>(std::from_chars(a.data() + i, a.data() + a.size(), m).ptr - a.data());
      j = static_cast<std::size_t>(std::from_chars(b.data() + j, b.data() + b.size(), n).ptr - b.data());
      if (m != n) return m < n;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

std::vector<std::filesystem::path> files_of_tosses(const std::filesystem::path& folder,
                                                   const std::vector<std::string>& extensions) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    if (std::find(extensions.begin(), extensions.end(), extension) != extensions.end()) paths.push_back(entry.path());
  }
  if (error) throw UsageError("cannot read the folder " + folder.string() + ": " + error.message());
  if (paths.empty()) {
    throw UsageError(folder.string() + ": holds no file of a toss, which ends with " + listed(extensions));
  }
  std::sort(paths.begin(), paths.end(), [](const auto& one, const auto& other) {
    const std::string a = one.filename().string(), b = other.filename().string();
    return in_order(a, b) || (!in_order(b, a) && a < b);
  });
  return paths;
}

std::vector<Tensor> tensors_of(const std::vector<Toss>& tosses) {
  std::vector<Tensor> all;
  for (const Toss& toss : tosses) {
    all.insert(all.end(), {toss.position, toss.orientation, toss.velocity, toss.angular_velocity});
  }
  return all;
}

std::vector<Toss> read_tosses(const std::filesystem::path& folder, double length) {
  const std::vector<std::filesystem::path> paths = files_of_tosses(folder, {".pt", ".csv"});
  std::vector<Toss> tosses;
  tosses.reserve(paths.size());
  for (const std::filesystem::path& path : paths) tosses.push_back(read_toss(path, length));
  return tosses;
}

}  // namespace lcp::training
