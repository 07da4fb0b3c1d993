# Defines TorchLCP::libtorch, the LibTorch that TorchLCP is built with and against which its users link, and sets
# TORCHLCP_TORCH_LIBRARY_DIR and TORCHLCP_TORCH_VERSION.
# It is looked for, in this order, where Torch_DIR or CMAKE_PREFIX_PATH say, in a .venv beside the project that asks,
# and in the python3 on PATH. This file serves the build and, installed, every downstream project.

if(TARGET TorchLCP::libtorch)
  return()
endif()

# Sets `result` to the version that the TorchConfig.cmake in `folder` is of, or to "".
function(torchlcp_torch_version folder result)
  set(version "")
  if(EXISTS "${folder}/TorchConfigVersion.cmake")
    file(STRINGS "${folder}/TorchConfigVersion.cmake" line REGEX "PACKAGE_VERSION +\"[0-9.]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Sets `result` to the CMake prefix of the torch that `python` has, or to "".
function(torchlcp_torch_prefix python result)
  set(${result} "" PARENT_SCOPE)
  execute_process(
    COMMAND "${python}" -c "import torch.utils; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE prefix RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0 AND EXISTS "${prefix}/Torch/TorchConfig.cmake")
    set(${result} "${prefix}" PARENT_SCOPE)
  endif()
endfunction()

if(NOT TARGET torch)
  if(TORCHLCP_TORCH_CONFIG AND NOT EXISTS "${TORCHLCP_TORCH_CONFIG}")
    unset(TORCHLCP_TORCH_CONFIG CACHE)
  endif()
  find_file(TORCHLCP_TORCH_CONFIG Torch/TorchConfig.cmake
    HINTS "${Torch_DIR}/.." "$ENV{Torch_DIR}/.."
    PATHS ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH PATH_SUFFIXES share/cmake NO_DEFAULT_PATH)
  foreach(python IN ITEMS "${CMAKE_SOURCE_DIR}/.venv/bin/python" python3 python)
    if(NOT TORCHLCP_TORCH_CONFIG)
      torchlcp_torch_prefix("${python}" prefix)
      if(prefix)
        set(TORCHLCP_TORCH_CONFIG "${prefix}/Torch/TorchConfig.cmake" CACHE FILEPATH "" FORCE)
      endif()
    endif()
  endforeach()
  if(NOT TORCHLCP_TORCH_CONFIG)
    find_file(TORCHLCP_TORCH_CONFIG Torch/TorchConfig.cmake PATH_SUFFIXES share/cmake)
  endif()
  if(NOT TORCHLCP_TORCH_CONFIG)
    message(FATAL_ERROR
      "TorchLCP needs LibTorch, and none was found by Torch_DIR, CMAKE_PREFIX_PATH, .venv or python3.\n"
      "In a clone of TorchLCP run:  script/bootstrap\n"
      "Elsewhere add:  -DCMAKE_PREFIX_PATH=$(python3 -c 'import torch.utils; print(torch.utils.cmake_prefix_path)')")
  endif()
  mark_as_advanced(TORCHLCP_TORCH_CONFIG)
  get_filename_component(torchlcp_torch_dir "${TORCHLCP_TORCH_CONFIG}" DIRECTORY)
endif()

add_library(TorchLCP::libtorch INTERFACE IMPORTED GLOBAL)
if(TARGET torch)
  # The project has found its LibTorch already.
  get_target_property(torchlcp_torch_library torch_cpu LOCATION)
  get_filename_component(TORCHLCP_TORCH_LIBRARY_DIR "${torchlcp_torch_library}" DIRECTORY)
  get_filename_component(torchlcp_torch_dir "${TORCHLCP_TORCH_LIBRARY_DIR}/../share/cmake/Torch" ABSOLUTE)
  target_link_libraries(TorchLCP::libtorch INTERFACE torch)
else()
  get_filename_component(torchlcp_torch_root "${torchlcp_torch_dir}/../../.." ABSOLUTE)
  set(TORCHLCP_TORCH_LIBRARY_DIR "${torchlcp_torch_root}/lib")
  if(EXISTS "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch_cuda.so")
    # A CUDA build: its own CMake files stop without a CUDA toolkit. TorchLCP needs only the CPU libraries.
    message(STATUS "LibTorch: CUDA build at ${torchlcp_torch_root}; linking its CPU libraries")
    target_include_directories(TorchLCP::libtorch INTERFACE
      "${torchlcp_torch_root}/include" "${torchlcp_torch_root}/include/torch/csrc/api/include")
    target_link_libraries(TorchLCP::libtorch INTERFACE
      "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch.so"
      "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch_cpu.so"
      "${TORCHLCP_TORCH_LIBRARY_DIR}/libc10.so")
  else()
    find_package(Torch REQUIRED PATHS "${torchlcp_torch_dir}" NO_DEFAULT_PATH)
    target_link_libraries(TorchLCP::libtorch INTERFACE torch)
  endif()
endif()
torchlcp_torch_version("${torchlcp_torch_dir}" TORCHLCP_TORCH_VERSION)
message(STATUS "LibTorch: ${TORCHLCP_TORCH_VERSION} in ${TORCHLCP_TORCH_LIBRARY_DIR}")
