# Defines TorchLCP::libtorch, the LibTorch that TorchLCP is built with and against which its users link. Sets
# TORCHLCP_TORCH_LIBRARY_DIR and TORCHLCP_TORCH_VERSION, or TORCHLCP_TORCH_PROBLEM, which says why it cannot.
#
# LibTorch is looked for, in this order, where Torch_DIR or CMAKE_PREFIX_PATH say, in a .venv beside the project that
# asks, in the python3 on PATH, in the system, and where TORCHLCP_TORCH_FALLBACK says. This file serves the build and,
# installed, every downstream project.

if(TARGET TorchLCP::libtorch)
  return()
endif()
set(TORCHLCP_TORCH_PROBLEM "")
set(TORCHLCP_OLDEST_TORCH 2.11)
set(TORCHLCP_NEWEST_TORCH 2.15) # that is tested

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

# Sets `result` to the folder of TorchConfig.cmake, or to "".
function(torchlcp_find_torch_dir result)
  foreach(given IN ITEMS "${Torch_DIR}" "$ENV{Torch_DIR}")
    if(given AND EXISTS "${given}/TorchConfig.cmake")
      set(${result} "${given}" PARENT_SCOPE)
      return()
    elseif(given)
      message(WARNING "Torch_DIR is ${given}, which has no TorchConfig.cmake; looking elsewhere")
    endif()
  endforeach()
  unset(torchlcp_config) # find_file does nothing while its variable is set
  find_file(torchlcp_config Torch/TorchConfig.cmake
    PATHS ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH PATH_SUFFIXES share/cmake NO_DEFAULT_PATH NO_CACHE)
  foreach(python IN ITEMS "${CMAKE_SOURCE_DIR}/.venv/bin/python" python3 python)
    if(NOT torchlcp_config)
      torchlcp_torch_prefix("${python}" prefix)
      if(prefix)
        set(torchlcp_config "${prefix}/Torch/TorchConfig.cmake")
      endif()
    endif()
  endforeach()
  if(NOT torchlcp_config)
    find_file(torchlcp_config Torch/TorchConfig.cmake PATHS "${TORCHLCP_TORCH_FALLBACK}" PATH_SUFFIXES share/cmake NO_CACHE)
  endif()
  if(torchlcp_config)
    get_filename_component(folder "${torchlcp_config}" DIRECTORY)
    set(${result} "${folder}" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# Sets `result` to the version of the LibTorch whose TorchConfig.cmake is in `folder`, or to "".
function(torchlcp_torch_version folder result)
  set(version "")
  if(EXISTS "${folder}/TorchConfigVersion.cmake")
    file(STRINGS "${folder}/TorchConfigVersion.cmake" line REGEX "PACKAGE_VERSION +\"[0-9.]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

if(TARGET torch)
  # The project has found its LibTorch already.
  get_target_property(torchlcp_torch_library torch_cpu LOCATION)
  get_filename_component(TORCHLCP_TORCH_LIBRARY_DIR "${torchlcp_torch_library}" DIRECTORY)
  get_filename_component(torchlcp_torch_dir "${TORCHLCP_TORCH_LIBRARY_DIR}/../share/cmake/Torch" ABSOLUTE)
else()
  torchlcp_find_torch_dir(torchlcp_torch_dir)
  if(NOT torchlcp_torch_dir)
    string(CONCAT TORCHLCP_TORCH_PROBLEM
      "TorchLCP needs LibTorch, and none was found by Torch_DIR, CMAKE_PREFIX_PATH, .venv or python3. "
      "In a clone of TorchLCP run:  script/bootstrap   Elsewhere add:  "
      "-DTorch_DIR=$(python3 -c 'import torch.utils; print(torch.utils.cmake_prefix_path)')/Torch")
    return()
  endif()
  get_filename_component(torchlcp_torch_root "${torchlcp_torch_dir}/../../.." ABSOLUTE)
  set(TORCHLCP_TORCH_LIBRARY_DIR "${torchlcp_torch_root}/lib")
endif()

torchlcp_torch_version("${torchlcp_torch_dir}" TORCHLCP_TORCH_VERSION)
string(REGEX REPLACE "[.][0-9]+$" "" torchlcp_torch_minor "${TORCHLCP_TORCH_VERSION}")
if(torchlcp_torch_minor AND torchlcp_torch_minor VERSION_LESS TORCHLCP_OLDEST_TORCH)
  string(CONCAT TORCHLCP_TORCH_PROBLEM
    "TorchLCP needs LibTorch ${TORCHLCP_OLDEST_TORCH} or newer, and the one in ${TORCHLCP_TORCH_LIBRARY_DIR} is "
    "${TORCHLCP_TORCH_VERSION}. Update it:  pip install 'torch>=${TORCHLCP_OLDEST_TORCH}'   or choose another by Torch_DIR")
  return()
elseif(torchlcp_torch_minor VERSION_GREATER TORCHLCP_NEWEST_TORCH)
  message(WARNING
    "LibTorch ${TORCHLCP_TORCH_VERSION} is newer than ${TORCHLCP_NEWEST_TORCH}, the newest that TorchLCP is tested with")
endif()

add_library(TorchLCP::libtorch INTERFACE IMPORTED)
if(NOT TARGET torch AND EXISTS "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch_cuda.so")
  # The CMake files of a CUDA build of LibTorch stop without a CUDA toolkit. TorchLCP needs only the CPU libraries.
  message(STATUS "LibTorch: CUDA build at ${torchlcp_torch_root}; linking its CPU libraries")
  target_include_directories(TorchLCP::libtorch INTERFACE
    "${torchlcp_torch_root}/include" "${torchlcp_torch_root}/include/torch/csrc/api/include")
  target_link_libraries(TorchLCP::libtorch INTERFACE
    "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch.so"
    "${TORCHLCP_TORCH_LIBRARY_DIR}/libtorch_cpu.so"
    "${TORCHLCP_TORCH_LIBRARY_DIR}/libc10.so")
else()
  if(NOT TARGET torch)
    find_package(Torch REQUIRED PATHS "${torchlcp_torch_dir}" NO_DEFAULT_PATH)
  endif()
  target_link_libraries(TorchLCP::libtorch INTERFACE torch)
endif()
if(torchlcp_torch_minor VERSION_EQUAL 2.11 AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # libtorch.so of PyTorch 2.11 exports std::filesystem of its own compiler, whose remove_all crashes with another
  # standard library. A program uses the first library that defines a function, so that -lstdc++ must come first.
  target_link_options(TorchLCP::libtorch INTERFACE "SHELL:-Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state")
endif()
message(STATUS "LibTorch: ${TORCHLCP_TORCH_VERSION} in ${TORCHLCP_TORCH_LIBRARY_DIR}")
