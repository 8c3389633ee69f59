# libfarfault-trace: trace files for other programs (include/farfault/trace.h), as a shared and a static library, and its
# farfault-trace.pc. Both have no symbols but ff_trace_*: the static one is linked into one object whose other symbols become local.
# `cmake --install BUILD --component trace` installs it alone.
set(trace_library_version 1) # raised with FF_TRACE_VERSION
file(GLOB trace_library_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/trace/*.c)
set(trace_library_base memory status text output descriptor check)
list(TRANSFORM trace_library_base REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/src/base/\\1.c")

add_library(trace_library_objects OBJECT ${trace_library_sources} ${trace_library_base})
target_include_directories(trace_library_objects PRIVATE src include)
target_link_libraries(trace_library_objects PRIVATE PkgConfig::ZSTD PkgConfig::XXHASH Threads::Threads)

add_library(farfault-trace SHARED $<TARGET_OBJECTS:trace_library_objects>)
set_target_properties(farfault-trace PROPERTIES VERSION ${trace_library_version}.${PROJECT_VERSION} SOVERSION ${trace_library_version} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(farfault-trace PRIVATE PkgConfig::ZSTD PkgConfig::XXHASH Threads::Threads)
target_link_options(farfault-trace PRIVATE LINKER:--no-undefined)

set(trace_library_object ${CMAKE_BINARY_DIR}/lib/farfault-trace.o)
set(trace_library_static ${CMAKE_BINARY_DIR}/lib/libfarfault-trace.a)
add_custom_command(
  OUTPUT ${trace_library_static}
  COMMAND ${CMAKE_LINKER} -r -o ${trace_library_object} $<TARGET_OBJECTS:trace_library_objects>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${trace_library_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${trace_library_static}
  COMMAND ${CMAKE_AR} qcs ${trace_library_static} ${trace_library_object}
  DEPENDS trace_library_objects $<TARGET_OBJECTS:trace_library_objects>
  COMMENT "Linking static library libfarfault-trace.a" VERBATIM COMMAND_EXPAND_LISTS)
add_custom_target(farfault-trace-static ALL DEPENDS ${trace_library_static})

configure_file(cmake/farfault-trace.pc.in lib/pkgconfig/farfault-trace.pc @ONLY)
install(TARGETS farfault-trace LIBRARY DESTINATION lib COMPONENT trace)
install(FILES ${trace_library_static} DESTINATION lib COMPONENT trace)
install(FILES include/farfault/trace.h DESTINATION include/farfault COMPONENT trace)
install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/farfault-trace.pc DESTINATION lib/pkgconfig COMPONENT trace)
