# Enables CUDA. Defines TorchLCP::libtorch_cuda, the libraries of LibTorch that only its builds for CUDA have, and
# torchlcp_cuda_target(), which sets how a target of .cu files is compiled.
set(torchlcp_torch_cuda "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch_cuda.so")
if(NOT EXISTS "${torchlcp_torch_cuda}")
  message(FATAL_ERROR
    "TORCHLCP_CUDA is ON, but the LibTorch ${TORCHLCP_TORCH_VERSION} in ${TORCHLCP_TORCH_LIBRARY_DIR} is built for the "
    "CPU alone: install one built for CUDA, name it by -DTorch_DIR=..., or configure with -DTORCHLCP_CUDA=OFF")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120) # Ampere, Hopper, Blackwell, and newer ones by PTX
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)

add_library(TorchLCP::libtorch_cuda INTERFACE IMPORTED)
target_link_libraries(TorchLCP::libtorch_cuda INTERFACE
  TorchLCP::libtorch "${torchlcp_torch_cuda}" "${TORCHLCP_TORCH_LIBRARY_DIR}/libc10_cuda.so" CUDA::cudart)

function(torchlcp_cuda_target target)
  # The kernels round as those of a CPU with fused multiply-add do: fused operations are used where the kernels ask for
  # them, and nowhere else. Eigen's headers cause warning 20012: an annotation of a defaulted function has no effect.
  target_compile_options(${target} PRIVATE --expt-relaxed-constexpr -fmad=false -diag-suppress=20012)
  target_link_libraries(${target} PRIVATE TorchLCP::libtorch_cuda)
  set_target_properties(${target} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Shared CUDA_VISIBILITY_PRESET hidden
    POSITION_INDEPENDENT_CODE ON)
endfunction()
