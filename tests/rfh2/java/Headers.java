import com.ibm.mq.MQMessage;
import com.ibm.mq.headers.MQChainable;
import com.ibm.mq.headers.MQHeader;
import com.ibm.mq.headers.MQHeaderIterator;
import com.ibm.mq.headers.MQHeaderList;
import com.ibm.mq.headers.MQIIH;
import com.ibm.mq.headers.MQRFH;
import com.ibm.mq.headers.MQRFH2;
import com.ibm.mq.headers.pcf.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.json.JSONArray;
import org.json.JSONObject;

/** Reads and writes headers and PCF with IBM's classes: a request on each line of stdin, its answer on stdout, JSON both. */
public class Headers {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        for (String line; (line = in.readLine()) != null;) {
            JSONObject answer;
            try {
                answer = answered(new JSONObject(line));
            } catch (Exception error) {
                StringWriter trace = new StringWriter();
                error.printStackTrace(new PrintWriter(trace));
                answer = new JSONObject().put("error", trace.toString());
            }
            out.println(answer);
        }
    }

    static JSONObject answered(JSONObject asked) throws Exception {
        int encoding = asked.getInt("encoding"), ccsid = asked.getInt("ccsid");
        switch (asked.getString("do")) {
            case "read": return read(asked.getString("format"), encoding, ccsid, bytes(asked.getString("hex")));
            case "list": return list(asked.getString("format"), encoding, ccsid, bytes(asked.getString("hex")));
            case "write": return write(asked.getJSONArray("headers"), encoding, ccsid);
            case "read-pcf": return readPcf(encoding, ccsid, bytes(asked.getString("hex")));
            default: return writePcf(asked, encoding, ccsid);
        }
    }

    static JSONObject read(String format, int encoding, int ccsid, byte[] data) throws Exception {
        MQHeaderIterator iterator =
                new MQHeaderIterator(new DataInputStream(new ByteArrayInputStream(data)), format, encoding, ccsid);
        JSONArray headers = new JSONArray();
        while (iterator.hasNext()) {
            MQHeader header = iterator.nextHeader();
            JSONObject shown = shown(header);
            ByteArrayOutputStream again = new ByteArrayOutputStream();
            header.write(new DataOutputStream(again), encoding, ccsid);
            headers.put(shown.put("hex", hex(again.toByteArray())));
            if (describes(header)) encoding = ((MQChainable) header).nextEncoding();
            if (describes(header)) ccsid = ((MQChainable) header).nextCharacterSet();
        }
        return new JSONObject().put("headers", headers).put("body", hex(iterator.getBodyAsBytes()));
    }

    /** Whether its Encoding and CodedCharSetId are those of what follows: in an MQIIH they are reserved. */
    static boolean describes(MQHeader header) {
        return !(header instanceof MQIIH);
    }

    static JSONObject list(String format, int encoding, int ccsid, byte[] data) throws Exception {
        MQMessage message = message(encoding, ccsid, data);
        message.format = format;
        MQHeaderList list = new MQHeaderList(message, false);
        MQMessage again = message(encoding, ccsid, new byte[0]);
        list.write(again, encoding, ccsid, false);
        JSONArray types = new JSONArray();
        for (Object header : list) types.put(((MQHeader) header).type());
        return new JSONObject().put("types", types).put("hex", hex(contents(again)));
    }

    static JSONObject write(JSONArray headers, int encoding, int ccsid) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (Object each : headers) {
            JSONObject wanted = (JSONObject) each;
            MQHeader header = (MQHeader) Class.forName("com.ibm.mq.headers." + wanted.getString("type"))
                    .getDeclaredConstructor().newInstance();
            set(header, wanted.getJSONObject("fields"));
            if (header instanceof MQRFH2) ((MQRFH2) header).setFolderStrings(strings(wanted.getJSONArray("folders")));
            if (header instanceof MQRFH) ((MQRFH) header).setNameValuePairs(pairs(wanted.getJSONArray("pairs")));
            header.write(new DataOutputStream(out), encoding, ccsid);
            if (describes(header)) encoding = ((MQChainable) header).nextEncoding();
            if (describes(header)) ccsid = ((MQChainable) header).nextCharacterSet();
        }
        return new JSONObject().put("hex", hex(out.toByteArray()));
    }

    static MQRFH.NameValuePair[] pairs(JSONArray wanted) {
        MQRFH.NameValuePair[] pairs = new MQRFH.NameValuePair[wanted.length()];
        for (int i = 0; i < pairs.length; i++)
            pairs[i] = MQRFH.createNameValuePair(wanted.getJSONArray(i).getString(0), wanted.getJSONArray(i).getString(1));
        return pairs;
    }

    static void set(MQHeader header, JSONObject fields) throws Exception {
        for (String name : fields.keySet()) {
            Object value = fields.get(name), present = header.getValue(name);
            if (present instanceof MQHeader) set((MQHeader) present, (JSONObject) value);
            else header.setValue(name, present instanceof byte[] ? bytes((String) value) : value);
        }
    }

    static JSONObject shown(MQHeader header) throws Exception {
        JSONObject fields = new JSONObject();
        for (Object each : header.fields()) {
            MQHeader.Field field = (MQHeader.Field) each;
            Object value = field.getValue();
            if (value instanceof MQHeader) value = shown((MQHeader) value).get("fields");
            fields.put(field.getName(), value instanceof byte[] ? hex((byte[]) value) : value);
        }
        JSONObject shown = new JSONObject().put("type", header.type()).put("fields", fields);
        if (header instanceof MQRFH2) shown.put("folders", new JSONArray(((MQRFH2) header).getFolderStrings()));
        if (header instanceof MQRFH) {
            JSONArray pairs = new JSONArray();
            for (Object pair : ((MQRFH) header).getNameValuePairs()) {
                MQRFH.NameValuePair both = (MQRFH.NameValuePair) pair;
                pairs.put(new JSONArray().put(both.getName()).put(both.getValue()));
            }
            shown.put("pairs", pairs);
        }
        return shown;
    }

    static JSONObject readPcf(int encoding, int ccsid, byte[] data) throws Exception {
        PCFMessage pcf = new PCFMessage(message(encoding, ccsid, data));
        MQCFH header = pcf.getHeader();
        MQMessage again = message(encoding, ccsid, new byte[0]);
        pcf.write(again);
        return new JSONObject().put("type", pcf.getType()).put("command", pcf.getCommand())
                .put("version", header.getVersion()).put("sequence", pcf.getMsgSeqNumber())
                .put("control", pcf.getControl()).put("comp_code", pcf.getCompCode()).put("reason", pcf.getReason())
                .put("parameters", parameters(pcf.getParameters())).put("hex", hex(contents(again)));
    }

    static JSONArray parameters(Enumeration<?> all) throws Exception {
        JSONArray shown = new JSONArray();
        while (all.hasMoreElements()) {
            PCFParameter each = (PCFParameter) all.nextElement();
            JSONArray one = new JSONArray().put(each.getType()).put(each.getParameter());
            if (each instanceof PCFFilterParameter) one.put(((PCFFilterParameter) each).getOperator());
            if (each instanceof MQCFGR) one.put(parameters(((MQCFGR) each).getParameters()));
            else if (each.getValue() instanceof byte[]) one.put(hex((byte[]) each.getValue()));
            else if (each.getValue() instanceof String || each.getValue() instanceof Number) one.put(each.getValue());
            else one.put(new JSONArray(each.getValue()));
            shown.put(one);
        }
        return shown;
    }

    static JSONObject writePcf(JSONObject asked, int encoding, int ccsid) throws Exception {
        PCFMessage pcf = new PCFMessage(
                asked.getInt("type"), asked.getInt("command"), asked.getInt("sequence"), asked.getInt("control") == 1);
        for (Object each : asked.getJSONArray("parameters")) pcf.addParameter(parameter((JSONArray) each, ccsid));
        MQMessage out = message(encoding, ccsid, new byte[0]);
        pcf.write(out);
        return new JSONObject().put("hex", hex(contents(out)));
    }

    static PCFParameter parameter(JSONArray wanted, int ccsid) throws Exception {
        int number = wanted.getInt(1), last = wanted.length() - 1;
        switch (wanted.getInt(0)) {
            case 3: return new MQCFIN(number, wanted.getInt(2));
            case 4:
                MQCFST string = new MQCFST(number, "");
                string.setCodedCharSetId(ccsid);
                string.setString(wanted.getString(2));
                return string;
            case 5: return new MQCFIL(number, numbers(wanted.getJSONArray(2)));
            case 6:
                MQCFSL list = new MQCFSL(number, new String[0]);
                list.setCodedCharSetId(ccsid);
                list.setStrings(strings(wanted.getJSONArray(2)));
                return list;
            case 9: return new MQCFBS(number, bytes(wanted.getString(2)));
            case 13: return new MQCFIF(number, wanted.getInt(2), wanted.getInt(last));
            case 14:
                MQCFSF filter = new MQCFSF(number, wanted.getInt(2), "");
                filter.setCodedCharSetId(ccsid);
                filter.setFilterValue(wanted.getString(last));
                return filter;
            case 15: return new MQCFBF(number, wanted.getInt(2), bytes(wanted.getString(last)));
            case 23: return new MQCFIN64(number, wanted.getLong(2));
            case 25: return new MQCFIL64(number, longs(wanted.getJSONArray(2)));
            default:
                MQCFGR group = new MQCFGR();
                group.setParameter(number);
                for (Object each : wanted.getJSONArray(2)) group.addParameter(parameter((JSONArray) each, ccsid));
                return group;
        }
    }

    static MQMessage message(int encoding, int ccsid, byte[] data) throws Exception {
        MQMessage message = new MQMessage();
        message.encoding = encoding;
        message.characterSet = ccsid;
        message.write(data);
        message.seek(0);
        return message;
    }

    static byte[] contents(MQMessage message) throws Exception {
        byte[] data = new byte[message.getMessageLength()];
        message.seek(0);
        message.readFully(data);
        return data;
    }

    static int[] numbers(JSONArray array) {
        int[] all = new int[array.length()];
        for (int i = 0; i < all.length; i++) all[i] = array.getInt(i);
        return all;
    }

    static long[] longs(JSONArray array) {
        long[] all = new long[array.length()];
        for (int i = 0; i < all.length; i++) all[i] = array.getLong(i);
        return all;
    }

    static String[] strings(JSONArray array) {
        String[] all = new String[array.length()];
        for (int i = 0; i < all.length; i++) all[i] = array.getString(i);
        return all;
    }

    static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    static String hex(byte[] data) {
        return HexFormat.of().formatHex(data);
    }
}
