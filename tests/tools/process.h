// SPDX-License-Identifier: Apache-2.0
// A program run by a test: its standard output to wait on, signals, its end. Killed if still there.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace unpin {

class Process {
 public:
  // Starts the program `command[0]`; its stdout and stderr come to Line() and Rest().
  explicit Process(std::vector<std::string> command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE() << "pipe2: " << errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    if (error != 0) ADD_FAILURE() << "spawn " << command[0] << ": " << strerror(error);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  ~Process() {
    if (pid_ > 0) {
      Signal(SIGKILL);
      Wait();
    }
    std::fclose(output_);
  }

  void Signal(int signal) { kill(pid_, signal); }

  // The next line of output, without its end; empty at the end of the output.
  std::string Line() {
    std::string line;
    for (int c = std::getc(output_); c != EOF && c != '\n'; c = std::getc(output_)) line += c;
    return line;
  }

  std::string Rest() {
    std::string rest;
    for (int c = std::getc(output_); c != EOF; c = std::getc(output_)) rest += c;
    return rest;
  }

  // Its exit status, or minus the signal that killed it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

}  // namespace unpin
