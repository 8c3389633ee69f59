# libfarfault-simulate (include/farfault/simulate.h): programs run, recorded and simulated for other programs, and farfault-simulate.pc. It has no
# symbols but ff_simulate_*, and starts the program farfault, which an installation and a build folder have in ../bin.
set(simulate_library_version 1) # raised with FF_SIMULATE_VERSION
add_library(farfault-simulate SHARED $<TARGET_OBJECTS:ff_simulate>)
set_target_properties(farfault-simulate PROPERTIES VERSION ${simulate_library_version}.${PROJECT_VERSION} SOVERSION ${simulate_library_version}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINKER_LANGUAGE C)
target_link_libraries(farfault-simulate PRIVATE ff_report ff_base ${CMAKE_DL_LIBS} Threads::Threads)
target_link_options(farfault-simulate PRIVATE LINKER:--no-undefined LINKER:--gc-sections LINKER:--as-needed)

configure_file(cmake/farfault-simulate.pc.in lib/pkgconfig/farfault-simulate.pc @ONLY)
install(TARGETS farfault-simulate LIBRARY DESTINATION lib COMPONENT simulate)
install(FILES include/farfault/simulate.h DESTINATION include/farfault COMPONENT simulate)
install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/farfault-simulate.pc DESTINATION lib/pkgconfig COMPONENT simulate)

# The Python package, where Debian's Python looks if the prefix is /usr, and the plug-in by which policies are written in Python.
add_library(policy-bridge MODULE src/bridge/policy_bridge.c)
target_include_directories(policy-bridge PRIVATE include)
set_target_properties(policy-bridge PROPERTIES PREFIX "" OUTPUT_NAME python LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farfault/policies)
install(TARGETS policy-bridge DESTINATION lib/farfault/policies COMPONENT simulate)
install(DIRECTORY python/farfault DESTINATION lib/python3/dist-packages COMPONENT simulate PATTERN __pycache__ EXCLUDE)
