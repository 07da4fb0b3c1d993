# Stops with one clear message where TorchLCP cannot be compiled.
if(NOT UNIX OR APPLE)
  message(FATAL_ERROR "TorchLCP supports Linux alone; this is ${CMAKE_SYSTEM_NAME}")
endif()
set(oldest_GNU 12)  # the first with __builtin_shufflevector
set(oldest_Clang 14)
if(NOT DEFINED oldest_${CMAKE_CXX_COMPILER_ID} OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest_${CMAKE_CXX_COMPILER_ID})
  message(FATAL_ERROR
    "TorchLCP needs GCC ${oldest_GNU} or newer, or Clang ${oldest_Clang} or newer; ${CMAKE_CXX_COMPILER} is "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. Choose another one by -DCMAKE_CXX_COMPILER=g++-12")
endif()
