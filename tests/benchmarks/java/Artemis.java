import java.io.File;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;

/** An embedded Artemis that keeps persistent messages in a directory, and syncs them. Arguments: port, directory. */
public class Artemis {
  public static void main(String[] of) throws Exception {
    Configuration configuration = new ConfigurationImpl();
    configuration.setSecurityEnabled(false);
    configuration.setJournalType(JournalType.NIO);
    configuration.setBrokerInstance(new File(of[1]));
    configuration.setMaxDiskUsage(-1);
    configuration.addAddressSetting("#", new AddressSettings().setMaxSizeBytes(-1));
    configuration.addAcceptorConfiguration("tcp", "tcp://127.0.0.1:" + of[0]);
    new EmbeddedActiveMQ().setConfiguration(configuration).start();
  }
}
