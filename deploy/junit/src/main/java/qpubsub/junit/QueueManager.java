package qpubsub.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A queue manager with IBM's developer defaults for tests with JUnit 5: {@code qpubsub dev} on a port that is free.
 *
 * <p>{@code @RegisterExtension static final QueueManager MQ = new QueueManager();} or
 * {@code @ExtendWith(QueueManager.class)} with a parameter of this type. All classes of a run that ask for the same
 * options share one process. It ends after the last test, and with this JVM, however that ends.
 *
 * <p>The program is {@code qpubsub} on the PATH, or what the system property {@code qpubsub.command} says:
 * {@code -Dqpubsub.command="python3 -m mq_qpubsub"}.
 */
public final class QueueManager implements BeforeAllCallback, ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(QueueManager.class);
    private final List<String> options;
    private Running running;

    /** Options of {@code qpubsub dev}, such as {@code "--mqsc", "src/test/mqsc"}. */
    public QueueManager(String... options) {
        this.options = List.of(options);
    }

    /** The one that {@code @ExtendWith} makes. */
    public QueueManager() {
        this(new String[0]);
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        running = context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(options, Running::new, Running.class);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == QueueManager.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return this;
    }

    public String name() {
        return running.value("qmgr");
    }

    public String host() {
        return running.value("host");
    }

    public int port() {
        return Integer.parseInt(running.value("port"));
    }

    /** {@code host(port)}. */
    public String connName() {
        return running.value("conn_name");
    }

    public String channel() {
        return running.value("channel");
    }

    public String user() {
        return running.value("user");
    }

    public String adminChannel() {
        return running.value("admin_channel");
    }

    /** Carries out MQSC commands, one on each line; what they print. */
    public String mqsc(String script) {
        return running.mqsc(script);
    }

    /** The process, and what its one line of JSON says. */
    private static final class Running implements ExtensionContext.Store.CloseableResource {
        private final Process process;
        private final String ready;

        Running(List<String> options) {
            List<String> words = command("dev", "--port", "0", "--json", "--until-eof", "--quiet");
            words.addAll(options);
            try {
                process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
                ready = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
            } catch (IOException error) {
                throw new IllegalStateException("cannot start " + String.join(" ", words), error);
            }
            if (ready == null) {
                throw new IllegalStateException(String.join(" ", words) + " did not start: stderr says why");
            }
        }

        String value(String key) {
            Matcher found = Pattern.compile("\"" + key + "\": \"?([^\",}]*)").matcher(ready);
            if (!found.find()) {
                throw new IllegalStateException(key + " is not in " + ready);
            }
            return found.group(1);
        }

        String mqsc(String script) {
            try {
                Process mqsc = new ProcessBuilder(command("mqsc", "-m", value("qmgr"), "--home", value("home")))
                        .redirectErrorStream(true).start();
                try (OutputStream lines = mqsc.getOutputStream()) {
                    lines.write(script.getBytes(StandardCharsets.UTF_8));
                }
                String printed = new String(mqsc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                if (mqsc.waitFor() != 0) {
                    throw new IllegalArgumentException(printed);
                }
                return printed;
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void close() throws IOException, InterruptedException {
            process.getOutputStream().close();
            if (!process.waitFor(15, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }

        private static List<String> command(String... words) {
            List<String> all = new ArrayList<>(List.of(System.getProperty("qpubsub.command", "qpubsub").split(" ")));
            all.addAll(Arrays.asList(words));
            return all;
        }
    }
}
