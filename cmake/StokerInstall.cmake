# StokerInstall.cmake - install the headers, the libraries, the pkg-config files, the CMake package, the documents, the manual pages
# and the shells' completions.
include(CMakePackageConfigHelpers)

set(stoker_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stoker")

install(TARGETS stoker EXPORT stoker-targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/loader/include/stoker"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT stoker-targets NAMESPACE stoker:: DESTINATION "${stoker_package_dir}")

# libstoker.so brings its dependencies along; a program that links libstoker.a must link them itself.
set(stoker_requires "")
set(stoker_pc_libs "")
set(stoker_config_dependencies "")
if(NOT BUILD_SHARED_LIBS)
  set(stoker_pc_libs "-pthread -lm -ldl")
  foreach(dependency IN ITEMS uring deflate png jpeg webp lz4 zstd)
    string(TOUPPER "${dependency}" upper)
    if(STOKER_HAVE_${upper})
      list(APPEND stoker_requires lib${dependency})
      list(APPEND stoker_config_dependencies ${dependency})
    endif()
  endforeach()
endif()
list(JOIN stoker_requires ", " stoker_requires)
set(stoker_config_dnnl OFF)
set(stoker_pc_dnnl "")
if(NOT BUILD_SHARED_LIBS AND STOKER_HAVE_DNNL)
  set(stoker_config_dnnl ON)
  set(stoker_pc_dnnl "-ldnnl")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/stoker-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/stoker-config.cmake"
  INSTALL_DESTINATION "${stoker_package_dir}")
# From the first release on only a major version may break compatibility.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/stoker-config-version.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/stoker-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/stoker-config-version.cmake"
        DESTINATION "${stoker_package_dir}")

# The prefix is relative to the .pc file, so that the installed tree can be moved.
set(stoker_pc_prefix "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH stoker_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  cmake_path(APPEND stoker_pc_up "\${pcfiledir}" "${stoker_pc_prefix}")
  string(REGEX REPLACE "/$" "" stoker_pc_prefix "${stoker_pc_up}")
endif()
cmake_path(APPEND stoker_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND stoker_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/stoker.pc.in"
               "${CMAKE_CURRENT_BINARY_DIR}/stoker.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/stoker.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET stoker_trainer)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/stoker-trainer.pc.in"
                 "${CMAKE_CURRENT_BINARY_DIR}/stoker-trainer.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/stoker-trainer.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

file(GLOB stoker_pages RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md"
     "${PROJECT_SOURCE_DIR}/docs/*.svg" "${PROJECT_SOURCE_DIR}/docs/formats/*.md" "${PROJECT_SOURCE_DIR}/examples/*")
set(stoker_documents LICENSE README.md SECURITY.md CHANGELOG.md ${stoker_pages} loader/python/README.md
    loader/python/MIGRATION.md trainer/README.md trainer/programs/README.md)
install(CODE "set(stoker_source [[${PROJECT_SOURCE_DIR}]])
  set(stoker_scratch [[${CMAKE_CURRENT_BINARY_DIR}/documents]])
  set(stoker_documents \"${stoker_documents}\")
  set(stoker_to [[${CMAKE_INSTALL_DOCDIR}]])
  set(stoker_headers [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/InstallDocuments.cmake")
install(PROGRAMS "${PROJECT_SOURCE_DIR}/datasets/fetch-mnist.sh"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/stoker")

# Manual pages and completions are what the programs print; those of another machine, or with a sanitizer, are not started.
if(NOT CMAKE_CROSSCOMPILING AND NOT STOKER_SANITIZE AND NOT STOKER_FUZZ AND NOT STOKER_COVERAGE)
  # stoker_install_page(PROGRAM FORM FILE FOLDER): what PROGRAM --help=FORM prints, as FOLDER/FILE below share.
  function(stoker_install_page program form file folder)
    set(page "${PROJECT_BINARY_DIR}/pages/${folder}/${file}")
    add_custom_command(OUTPUT "${page}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/pages/${folder}"
      COMMAND ${program} --help=${form} > "${page}"
      DEPENDS ${program} stoker COMMENT "${program} --help=${form}" VERBATIM)
    install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/${folder}")
    set_property(GLOBAL APPEND PROPERTY stoker_pages "${page}")
  endfunction()

  foreach(program IN ITEMS loaderbench stoker-pack stoker-mnist stoker-housing)
    if(TARGET ${program})
      stoker_install_page(${program} man ${program}.1 man/man1)
      stoker_install_page(${program} bash ${program} bash-completion/completions)
      stoker_install_page(${program} zsh _${program} zsh/site-functions)
      stoker_install_page(${program} fish ${program}.fish fish/vendor_completions.d)
    endif()
  endforeach()
  get_property(stoker_pages GLOBAL PROPERTY stoker_pages)
  add_custom_target(stoker_pages ALL DEPENDS ${stoker_pages})
endif()
