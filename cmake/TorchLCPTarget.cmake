# Functions that give targets the compile options of this project, and export libraries.

function(torchlcp_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-sign-compare)
  if(TORCHLCP_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TORCHLCP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TORCHLCP_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${TORCHLCP_SANITIZE})
  endif()
endfunction()

# Compiles up to `size` sources of a target as one, since reading LibTorch's headers takes longer than most sources.
# CMAKE_UNITY_BUILD=OFF compiles each source by itself.
function(torchlcp_compile_together target size)
  if(NOT DEFINED CMAKE_UNITY_BUILD OR CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# Declares a library that is exported as TorchLCP::<name> and, if TORCHLCP_INSTALL is on, installed. target_sources adds the
# sources.
function(torchlcp_export target name)
  torchlcp_target(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  if(TORCHLCP_INSTALL)
    install(TARGETS ${target} EXPORT TorchLCPTargets)
  endif()
endfunction()
