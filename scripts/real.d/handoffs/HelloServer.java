import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** A web server whose requests a pool of four threads answers: {@code HelloServer PORT}. */
public class HelloServer {
    public static void main(String[] words) throws Exception {
        var address = new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0]));
        var server = HttpServer.create(address, 100);
        var body = "hello\n".getBytes();
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        // SIGTERM ends it, which is a success.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.stop(0);
            Runtime.getRuntime().halt(0);
        }));
        server.start();
    }
}
