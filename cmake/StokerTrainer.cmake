# StokerTrainer.cmake - two trainer libraries, as in StokerLibrary.cmake: libstoker_trainer, and an archive of its objects for tests.

# stoker_add_trainer(name kind library): `library` is stoker or stoker_testing.
function(stoker_add_trainer name kind library)
  add_library(${name} ${kind})
  target_include_directories(${name}
    PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/trainer/include>"
           "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${library} PRIVATE Threads::Threads m)
  stoker_version_symbols(${name})
endfunction()
