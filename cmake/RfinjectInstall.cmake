# Declares what is shipped: `cmake --install`, the packages of CPack, and the wheel (scripts/wheel) take it from here.
#
#   component runtime   the command, the library and what it opens, manual page, completions, licences
#   component debian    what a Debian package has in another place
#   component debug     debug information, in files of their own that gdb finds by their build id; left out by default
#
# Programs of tests and benchmarks are no part of any.
set(shipped ${PROJECT_BINARY_DIR}/shipped)

# rfinject_ship(TARGET FOLDER NAME): installs the target's file as FOLDER/NAME, stripped.
function(rfinject_ship target folder name)
  set(file ${shipped}/${folder}/${name})
  set(debug ${shipped}/debug/${target})
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -DFILE=$<TARGET_FILE:${target}> -DSTRIPPED=${file} -DDEBUG=${debug}
            -DOBJCOPY=${CMAKE_OBJCOPY} -DREADELF=${CMAKE_READELF}
            -P ${PROJECT_SOURCE_DIR}/cmake/strip_apart.cmake
    DEPENDS ${target} ${PROJECT_SOURCE_DIR}/cmake/strip_apart.cmake
    COMMENT "Stripping ${name}" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY rfinject_shipped ${file})
  install(PROGRAMS ${file} DESTINATION ${folder} COMPONENT runtime)
  install(DIRECTORY ${debug}/ DESTINATION lib/debug COMPONENT debug EXCLUDE_FROM_ALL)
endfunction()

# rfinject_ship_output(FILE FOLDER [COMPONENT] ARGUMENTS…): installs what the command prints when it is given ARGUMENTS.
function(rfinject_ship_output file folder component)
  add_custom_command(
    OUTPUT ${shipped}/${folder}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${shipped}/${folder}
    COMMAND rfinject ${ARGN} > ${shipped}/${folder}/${file}
    DEPENDS rfinject VERBATIM)
  set_property(GLOBAL APPEND PROPERTY rfinject_shipped ${shipped}/${folder}/${file})
  install(FILES ${shipped}/${folder}/${file} DESTINATION ${folder} COMPONENT ${component})
endfunction()

rfinject_ship(rfinject bin rfinject)
rfinject_ship(rfinject_library lib/rfinject librfinject.so)
if(TARGET rfinject_virtual_gpu)
  # librfinject.so looks for these libraries below its own folder.
  set(virtual_gpu lib/rfinject/virtual_gpu)
  rfinject_ship(rfinject_virtual_gpu ${virtual_gpu} librfinject_virtual_gpu.so)
  rfinject_ship(rfinject_virtual_driver ${virtual_gpu} libcuda.so.1)
  rfinject_ship(rfinject_virtual_values ${virtual_gpu} librfinject_values.so)
  rfinject_ship(rfinject_virtual_nvml ${virtual_gpu} libnvidia-ml.so.1)
  install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/virtual_gpu/libcuda.so DESTINATION ${virtual_gpu} COMPONENT runtime)
  foreach(major 11 12 13)
    if(TARGET rfinject_virtual_cuda${major})
      rfinject_ship(rfinject_virtual_cuda${major} ${virtual_gpu} librfinject_cuda${major}.so)
    endif()
  endforeach()
endif()

rfinject_ship_output(rfinject.1 share/man/man1 runtime help --format man)
rfinject_ship_output(rfinject share/bash-completion/completions runtime completion bash)
rfinject_ship_output(rfinject.fish share/fish/vendor_completions.d runtime completion fish)
rfinject_ship_output(_rfinject share/zsh/site-functions runtime completion zsh)
# Debian's zsh looks there for the completions of packages.
install(FILES ${shipped}/share/zsh/site-functions/_rfinject DESTINATION share/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)

# The licences of everything that is linked in: on Debian these lie beside each package.
set(copyright ${shipped}/share/doc/rfinject/copyright)
set(notices ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/third_party_notes/NOTICES.md)
set(packages libprotobuf-dev libabsl-dev libsqlite3-dev zlib1g-dev libtomlplusplus-dev libboost1.74-dev libstdc++-12-dev libc6-dev)
foreach(package IN LISTS packages)
  list(APPEND notices /usr/share/doc/${package}/copyright)
endforeach()
list(APPEND notices /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/LGPL-2.1)
if(RFINJECT_LIBUNWIND_DIR)
  list(APPEND notices ${RFINJECT_LIBUNWIND_DIR}/COPYING)
endif()
foreach(notice IN LISTS notices)
  if(NOT EXISTS ${notice})
    message(STATUS "${notice} is not here: what is installed lacks this licence's text, and is not to be handed on")
    list(REMOVE_ITEM notices ${notice})
  endif()
endforeach()
add_custom_command(
  OUTPUT ${copyright}
  COMMAND ${CMAKE_COMMAND} -E cat ${notices} > ${copyright}
  DEPENDS ${notices} VERBATIM)
file(MAKE_DIRECTORY ${shipped}/share/doc/rfinject)
set_property(GLOBAL APPEND PROPERTY rfinject_shipped ${copyright})
install(FILES ${copyright} DESTINATION share/doc/rfinject COMPONENT runtime)

# Everything that `cmake --install` copies.
get_property(files GLOBAL PROPERTY rfinject_shipped)
add_custom_target(shipped ALL DEPENDS ${files})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rfinject)
set(CPACK_PACKAGE_VENDOR rfinject)
set(CPACK_PACKAGE_CONTACT "The authors of rfinject")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rooflines of unmodified PyTorch training jobs")
set(CPACK_PACKAGE_DESCRIPTION
    "Tells how far each layer of a PyTorch training job is from what the GPU could do, and why. Gets into the program as it is, counts FLOP and DRAM bytes of every kernel or estimates them, and attributes them to layer, phase and operator.")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")
set(CPACK_STRIP_FILES OFF)  # they are
include(CPack)
