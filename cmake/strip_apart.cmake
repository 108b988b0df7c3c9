# cmake -DFILE=… -DSTRIPPED=… -DDEBUG=… -DOBJCOPY=… -DREADELF=… -P strip_apart.cmake
# Copies FILE without debug information to STRIPPED, and the debug information into the folder DEBUG under the name by
# which debuggers look for it below /usr/lib/debug and in what `set debug-file-directory` names.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${READELF} -n ${FILE} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
  message(FATAL_ERROR "${FILE} has no build id, so nobody would find its debug information")
endif()
set(apart ${DEBUG}/.build-id/${CMAKE_MATCH_1})
set(name ${CMAKE_MATCH_2}.debug)
cmake_path(GET STRIPPED PARENT_PATH folder)
file(REMOVE_RECURSE ${DEBUG})
file(MAKE_DIRECTORY ${apart} ${folder})
execute_process(COMMAND ${OBJCOPY} --only-keep-debug ${FILE} ${apart}/${name} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OBJCOPY} --strip-all --remove-section=.comment ${FILE} ${STRIPPED} COMMAND_ERROR_IS_FATAL ANY)
