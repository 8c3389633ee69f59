# libfarfault (include/farfault/farfault.h) for other programs: shared and static, farfault.pc, and the CMake package `farfault` with the targets
# farfault::farfault and farfault::static. Both have no symbols but those that the header declares: the static one is linked into one object
# whose other symbols become local. Their objects are those of ff_runtime, ff_ptx and ff_base, but for what reads YAML,
# and the client's of ff_broker.
# `cmake --install BUILD --component library` installs it, without the virtual GPU.
include(CMakePackageConfigHelpers)
set(library_version 1) # raised with FF_VERSION
set(library_objects $<TARGET_OBJECTS:ff_runtime> "$<FILTER:$<TARGET_OBJECTS:ff_broker>,EXCLUDE,/(server|state|broker_list)[.]c>" $<TARGET_OBJECTS:ff_ptx> $<FILTER:$<TARGET_OBJECTS:ff_base>,EXCLUDE,/yaml>)
set(library_needs Threads::Threads ${CMAKE_DL_LIBS} m)

add_library(libfarfault SHARED ${library_objects})
set_target_properties(libfarfault PROPERTIES OUTPUT_NAME farfault EXPORT_NAME farfault VERSION ${library_version}.${PROJECT_VERSION} SOVERSION ${library_version}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINKER_LANGUAGE C)
target_include_directories(libfarfault INTERFACE $<INSTALL_INTERFACE:include>)
target_link_libraries(libfarfault PRIVATE ${library_needs})
target_link_options(libfarfault PRIVATE LINKER:--no-undefined)

set(library_object ${CMAKE_BINARY_DIR}/lib/libfarfault.o)
set(library_static ${CMAKE_BINARY_DIR}/lib/libfarfault.a)
add_custom_command(
  OUTPUT ${library_static}
  COMMAND ${CMAKE_LINKER} -r -o ${library_object} ${library_objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${library_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${library_static}
  COMMAND ${CMAKE_AR} qcs ${library_static} ${library_object}
  DEPENDS ff_runtime ff_broker ff_ptx ff_base ${library_objects}
  COMMENT "Linking static library libfarfault.a" VERBATIM COMMAND_EXPAND_LISTS)
add_custom_target(libfarfault-static ALL DEPENDS ${library_static})

# In the build folder, too, farfault.pc says where headers, library and examples are.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include ${CMAKE_BINARY_DIR}/share/doc/farfault)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/examples ${CMAKE_BINARY_DIR}/share/doc/farfault/examples SYMBOLIC)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/include/farfault ${CMAKE_BINARY_DIR}/include/farfault SYMBOLIC)
configure_file(cmake/farfault.pc.in lib/pkgconfig/farfault.pc @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lib/cmake/farfault/farfaultConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS libfarfault EXPORT farfault LIBRARY DESTINATION lib COMPONENT library)
install(FILES ${library_static} DESTINATION lib COMPONENT library)
install(FILES include/farfault/farfault.h include/farfault/virtual.h DESTINATION include/farfault COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/farfault.pc DESTINATION lib/pkgconfig COMPONENT library)
install(EXPORT farfault NAMESPACE farfault:: FILE farfaultTargets.cmake DESTINATION lib/cmake/farfault COMPONENT library)
install(FILES cmake/farfaultConfig.cmake ${CMAKE_BINARY_DIR}/lib/cmake/farfault/farfaultConfigVersion.cmake DESTINATION lib/cmake/farfault COMPONENT library)

# The reference of libfarfault (`ninja docs`), if there is a doxygen; not part of an installation.
find_program(DOXYGEN doxygen)
if(DOXYGEN)
  configure_file(cmake/Doxyfile.in Doxyfile @ONLY)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/docs/api)
  add_custom_target(docs COMMAND ${DOXYGEN} ${CMAKE_BINARY_DIR}/Doxyfile COMMENT "Writing docs/api/html/index.html" VERBATIM)
else()
  message(STATUS "no doxygen: no target docs")
endif()
