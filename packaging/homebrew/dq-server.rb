# A formula of Homebrew: `dq server` with the module, beside Homebrew's own Valkey. A release names the archive of its
# tag and that archive's checksum here, and the formula goes into a tap.
class DqServer < Formula
  desc "Durable, ordered delay queue as a Redis data type, with a server for it"
  homepage "https://dq.example"
  url "https://dq.example/archive/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "llvm" => :build
  depends_on "rust" => :build
  depends_on "valkey"

  def install
    ENV["LIBCLANG_PATH"] = Formula["llvm"].opt_lib
    system "cargo", "build", "--release", "--locked"
    system "cargo", "install", *std_cargo_args(path: "cli")
    (libexec/"dq").install Dir["target/release/libdq.{dylib,so}"]
    # `dq server` looks there first.
    (libexec/"dq").install_symlink Formula["valkey"].opt_bin/"valkey-server"
  end

  service do
    run [opt_bin/"dq", "server", "--data", var/"dq"]
    keep_alive true
    log_path var/"log/dq.log"
    error_log_path var/"log/dq.log"
  end

  test do
    assert_match "dq #{version}", shell_output("#{bin}/dq --version")
    server = IO.popen([bin/"dq", "server", "--ephemeral"])
    url = server.gets.chomp
    assert_match "pong", shell_output("#{Formula["valkey"].opt_bin}/valkey-cli -u #{url} PING").downcase
  ensure
    Process.kill("TERM", server.pid)
  end
end
