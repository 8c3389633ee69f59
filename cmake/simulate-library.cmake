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
