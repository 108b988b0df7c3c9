# What every target of the project shares: warnings, sanitizers, include root, and how a unit test is declared.

add_library(rfinject_options INTERFACE)
target_compile_options(rfinject_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
target_include_directories(rfinject_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(RFINJECT_SANITIZE)
  target_compile_options(rfinject_options INTERFACE -fsanitize=${RFINJECT_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(rfinject_options INTERFACE -fsanitize=${RFINJECT_SANITIZE})
endif()

if(RFINJECT_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# rfinject_test(NAME SOURCES… LIBRARIES …): a GoogleTest program beside the code that it tests.
function(rfinject_test name)
  if(NOT RFINJECT_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE rfinject_options ${arg_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120 LABELS no_torch)
endfunction()
