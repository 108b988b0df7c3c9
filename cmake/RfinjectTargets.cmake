# What every target of the project shares: warnings, sanitizers, include root, precompiled headers, and how a unit test is
# declared.

add_library(rfinject_options INTERFACE)
target_compile_options(rfinject_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
target_include_directories(rfinject_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(RFINJECT_SANITIZE)
  target_compile_options(rfinject_options INTERFACE -fsanitize=${RFINJECT_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(rfinject_options INTERFACE -fsanitize=${RFINJECT_SANITIZE})
  # GCC defines these by itself; the tests ask for them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND RFINJECT_SANITIZE MATCHES address)
    target_compile_definitions(rfinject_options INTERFACE __SANITIZE_ADDRESS__=1)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND RFINJECT_SANITIZE MATCHES thread)
    target_compile_definitions(rfinject_options INTERFACE __SANITIZE_THREAD__=1)
  endif()
endif()

if(RFINJECT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # Instrumented programs are large, and lld links them in a third of the time.
  find_program(RFINJECT_LLD ld.lld-14 DOC "LLVM's linker, for the sanitizers' presets")
  if(RFINJECT_LLD)
    target_link_options(rfinject_options INTERFACE -fuse-ld=lld)
  endif()
  # Functions of libtorch are called with types of ours that have the same layout: injector/torch/abi.h does on
  # purpose what clang's check "function" would refuse.
  target_compile_options(rfinject_options INTERFACE -fno-sanitize=function)
endif()

# Collecting garbage from 128 MB on, as is usual, takes GCC a tenth of its time; no file of ours takes 1 GB.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()

# Clang builds for its sanitizers, and checks what collector/thread_annotations.h says of locks; GCC decides which other
# warnings are errors.
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_compile_options(rfinject_options INTERFACE -Wno-error -Wthread-safety -Werror=thread-safety)
endif()

# Reading headers is a third of what a file of ours costs to compile and most of what a test costs, so each group of
# targets that is compiled in the same way shares one precompiled header. A file must still include all that it uses:
# clang-tidy reads it without the precompiled header.
function(rfinject_precompile target)
  # ccache takes a compilation with a precompiled header only when these are set, and CCACHE_SLOPPINESS (scripts/build).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC 12 takes copies in the standard library for overruns when they come out of a precompiled header.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  target_precompile_headers(${target} ${ARGN})
endfunction()

if(RFINJECT_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)

  # What a test needs beside the code that it tests. Tests are compiled without optimization, which is fast; the code
  # that they test is compiled as it is shipped.
  add_library(rfinject_test_options INTERFACE)
  target_compile_options(rfinject_test_options INTERFACE -O0 -g1)
  target_link_libraries(rfinject_test_options INTERFACE rfinject_options GTest::gmock GTest::gtest)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(rfinject_test_options INTERFACE -Wno-thread-safety)  # a test may know that it is alone
  endif()
  file(CONFIGURE OUTPUT cmake/test_headers.cc CONTENT "int main() {}\n" @ONLY)
  # An executable's code is position-independent in another way than a library's, and the precompiled header must be
  # compiled in the same way.
  add_executable(rfinject_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/cmake/test_headers.cc)
  target_link_libraries(rfinject_test_headers PRIVATE rfinject_test_options GTest::gtest_main)
  rfinject_precompile(rfinject_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <fstream> <map> <set>
                      <sstream> <string> <thread> <vector>)
endif()

# Several files of a folder are compiled as one, which halves what a whole build costs: most of a file's time is that of
# the headers and templates that all of them use. So a folder's files share their unnamed namespaces.
option(RFINJECT_UNITY "Compile several files as one" ON)
# All of a folder as one takes a third less time than eight files, and whoever changes one file waits longer, so builds
# that nobody edits have it: without tests, scripts/test's (scripts/build) and the sanitizers' presets. Names of a folder
# must differ for it.
set(RFINJECT_BATCH 8 CACHE STRING "How many files of the command or of a test program are compiled as one; 0: all of a folder")
function(rfinject_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${RFINJECT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# Most of the injected library runs once a process or once a second, and is compiled for size: every process that is
# preloaded maps it. HOT names the target's files that run at each call of a module, operator or launch.
function(rfinject_small target)
  cmake_parse_arguments(arg "" "" "HOT" ${ARGN})
  if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    target_compile_options(${target} PRIVATE -Os)
    # A vector that is put together from fields just written waits until they are stored.
    set(hot -O2 -fno-tree-slp-vectorize)
    # GCC optimizes what comes out of a precompiled header as it was told when that was made.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
      set(headers ${PROJECT_BINARY_DIR}/proto/CMakeFiles/rfinject_schema_headers.dir/cmake_pch.hxx)
      set(hot -O2 -fno-tree-slp-vectorize -include ${headers})
      set_source_files_properties(${arg_HOT} PROPERTIES SKIP_PRECOMPILE_HEADERS ON OBJECT_DEPENDS ${headers}.gch)
    endif()
    set_source_files_properties(${arg_HOT} PROPERTIES COMPILE_OPTIONS "${hot}")
  endif()
endfunction()

# rfinject_test(NAME [ISOLATED [TOGETHER SUITE…]] [SINGLE_THREAD] SOURCES… LIBRARIES …): a GoogleTest program beside the code that it tests;
# the target PART_tests builds all of a part (cli_tests). One process runs all of its tests.
#   ISOLATED       one process a test: for tests that leave something behind in their process (an environment variable, a
#                  library that is loaded, a thread) or end it
#   TOGETHER       suites of such a program whose tests leave nothing behind; each suite has a process
#   SINGLE_THREAD  it has one thread, about which the thread sanitizer can say nothing, so it is not built there
function(rfinject_test name)
  cmake_parse_arguments(arg "ISOLATED;SINGLE_THREAD" "" "SOURCES;LIBRARIES;TOGETHER" ${ARGN})
  if(NOT RFINJECT_TESTS OR (arg_SINGLE_THREAD AND RFINJECT_SANITIZE STREQUAL thread))
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE rfinject_test_options ${arg_LIBRARIES} GTest::gtest_main)
  rfinject_precompile(${name} REUSE_FROM rfinject_test_headers)
  rfinject_unity(${name})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${RFINJECT_BATCH})
  rfinject_test_target(${name})
  rfinject_part(part)
  if(part IN_LIST RFINJECT_TESTED_ELSEWHERE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(arg_ISOLATED)
    set(alone)
    foreach(suite IN LISTS arg_TOGETHER)
      add_test(NAME ${name}.${suite} COMMAND ${name} --gtest_filter=${suite}.*)
      set_tests_properties(${name}.${suite} PROPERTIES TIMEOUT 300 COST 15 LABELS no_torch)
      list(APPEND alone ${suite}.*)
    endforeach()
    if(alone)
      list(JOIN alone : alone)
      set(alone TEST_FILTER "-${alone}")
    endif()
    gtest_discover_tests(${name} ${alone} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120 LABELS no_torch)
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS no_torch)
  endif()
endfunction()

# Sets VARIABLE to the part of the project that is being declared: the first folder of its path.
function(rfinject_part variable)
  file(RELATIVE_PATH part ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" part ${part})
  set(${variable} ${part} PARENT_SCOPE)
endfunction()

# Adds TARGET to PART_tests.
function(rfinject_test_target target)
  rfinject_part(part)
  if(NOT TARGET ${part}_tests)
    add_custom_target(${part}_tests)
  endif()
  add_dependencies(${part}_tests ${target})
endfunction()
